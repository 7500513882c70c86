import type { At } from '../../core/time/time.js'
import type { SqliteConnection } from '../../drivers/sqlite/connection.js'
import { type Mode, WrongModeError } from '../../ports/mode.js'
import { Notifications } from '../shared/notifications.js'
import type { Leases } from './lease.js'
import type { Notifier } from './notify.js'
import type { Sweeper } from './retention.js'
import type { Statements } from './sql.js'

/** What the ledger and the ports of one backend share. */
export interface SqliteContext {
  readonly connection: SqliteConnection<Statements>
  readonly notifier: Notifier
  readonly sweeper: Sweeper
  readonly maxItemBytes: number
  readonly mode: ModeMark
  readonly leases: Leases
}

/** Writes, removes some of what has expired, and notifies listeners here and in other processes once it is written. */
export async function writeAndNotify<T>(
  { connection, notifier, sweeper }: SqliteContext,
  run: (sql: Statements, now: At, notifications: Notifications) => T,
): Promise<T> {
  const { result, notifications, now, swept } = await connection.write((sql, at) => {
    const collected = new Notifications()
    const written = run(sql, at, collected)
    notifier.store(sql, collected, at)
    return { result: written, notifications: collected, now: at, swept: sweeper.step(sql, at) }
  })
  swept?.()
  sweeper.note(notifications.removed)
  notifier.deliver(notifications, now)
  return result
}

/** Stores how the tables are used, in the transaction that first uses them so, and refuses the other mode from then on. */
export class ModeMark {
  readonly #file: string
  #known: Mode | undefined

  constructor(file: string) {
    this.#file = file
  }

  check(sql: Statements, mode: Mode): void {
    if (this.#known === mode) return
    const is = sql.mode.get()?.[0] as Mode | undefined
    if (is === undefined) {
      // Not remembered yet: this transaction may still fail.
      sql.setMode.run(mode)
      return
    }
    if (is !== mode) throw new WrongModeError(`The file ${this.#file}`, 'prefix', is, mode)
    this.#known = mode
  }

  /** Whether a work system uses the tables natively. Nothing is decided by asking. */
  isNative(sql: Statements): boolean {
    return (this.#known ?? sql.mode.get()?.[0]) === 'native'
  }
}
