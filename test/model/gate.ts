import type { GateView } from '../../src/ports/inspect.js'
import type { Effect } from '../../src/ports/settlement.js'

type OpenGate = Extract<Effect, { do: 'openGate' }>

/** A gate: how many members it still needs, how many are left that could still come, and who has been counted. */
export class Gate {
  readonly holds: string
  readonly members: ReadonlySet<string>
  readonly #of: 'done' | 'success'
  readonly #told = new Map<string, boolean>()
  readonly #need: number
  isFreed = false

  constructor(opened: OpenGate) {
    this.holds = opened.heldId
    this.members = new Set(opened.members)
    this.#of = opened.of
    this.#need = opened.need
  }

  /** The first word about a member counts; a repeated one changes nothing. */
  tell(member: string, ok: boolean): void {
    if (this.members.has(member) && !this.#told.has(member)) this.#told.set(member, ok)
  }

  /** As people see it. */
  view(): Omit<GateView, 'key'> {
    const waiting = [...this.members].filter((member) => !this.#told.has(member))
    return { heldId: this.holds, need: this.#needed(), of: this.#of, waiting }
  }

  #needed(): number {
    return this.#need - [...this.#told.values()].filter((ok) => ok || this.#of === 'done').length
  }

  /** Met, impossible (`false`), or still open. */
  verdict(): boolean | undefined {
    const need = this.#needed()
    const left = this.members.size - this.#told.size
    return need <= 0 ? true : need > left ? false : undefined
  }
}
