import { type Mode, WrongModeError } from '../../ports/mode.js'
import type { Statements } from './sql.js'

/** Says how the tables are used, within the transaction that uses them so; whoever says something else later is refused. */
export class ModeMark {
  readonly #file: string
  #known: Mode | undefined

  constructor(file: string) {
    this.#file = file
  }

  say(sql: Statements, mode: Mode): void {
    if (this.#known === mode) return
    const is = sql.mode.get()?.[0] as Mode | undefined
    if (is === undefined) {
      // Not remembered yet: this transaction may still fail.
      sql.sayMode.run(mode)
      return
    }
    if (is !== mode) throw new WrongModeError(`The file ${this.#file}`, 'prefix', is, mode)
    this.#known = mode
  }
}
