import type { Effect } from '../../../src/ports/settlement.js'
import type { Statements } from './statements.js'

interface OpenPage {
  readonly holds: string
  need: number
  left: number
  readonly of: 'done' | 'success'
}

/** The gates that a batch touches: opened, told, and decided once, at the end of the batch. */
export class GateBook {
  readonly #sql: Statements
  readonly #now: number
  readonly #pages = new Map<string, OpenPage>()
  #hasMembers: boolean | undefined

  constructor(sql: Statements, now: number) {
    this.#sql = sql
    this.#now = now
  }

  /** Whether a gate waits for this item, which is yet to come. */
  awaits(id: string): boolean {
    this.#hasMembers ??= this.#sql.anyMember.get() === 1
    return this.#hasMembers && this.#sql.gatesOf.get(id) !== undefined
  }

  /** A gate that is open already stays as it is. */
  open(effect: Extract<Effect, { do: 'openGate' }>): void {
    if (this.#page(effect.key) !== undefined) return
    const page: OpenPage = { holds: effect.holds, need: effect.need, left: 0, of: effect.of }
    this.#pages.set(effect.key, page)
    for (const member of new Set(effect.members)) {
      const [, , , state = 0, , , goneAt] = this.#sql.guardRow.get(member) ?? []
      if (state >= 3 && (goneAt ?? Infinity) > this.#now) {
        if (page.of === 'done' || state === 3) page.need -= 1
        continue
      }
      page.left += 1
      this.#hasMembers = true
      this.#sql.addMember.run(effect.key, member)
      this.#sql.markGated.run(member)
    }
  }

  /** The first word about a member counts. */
  tell(key: string, member: string, ok: boolean): void {
    const page = this.#page(key)
    if (page === undefined || this.#sql.tellMember.run(key, member).changes === 0) return
    page.left -= 1
    if (ok || page.of === 'done') page.need -= 1
  }

  /** An item ended: every gate that waits for it hears. */
  tellAll(member: string, ok: boolean): void {
    for (const key of this.#sql.gatesOf.all(member)) this.tell(key, member, ok)
  }

  /** An item came that a gate holds; the gate may have decided already. */
  look(key: string): void {
    this.#page(key)
  }

  /** Frees what the decided gates hold, and writes the rest. */
  close(): void {
    for (const [key, page] of this.#pages) {
      const isMet = page.need <= 0
      const isDecided = isMet || page.need > page.left
      // A gate may be opened before the item that it holds comes.
      if (!isDecided || this.#sql.guardRow.get(page.holds) === undefined) {
        this.#sql.putGate.run(key, page.holds, page.need, page.left, page.of)
        continue
      }
      this.#sql.freeItem.run(this.#now, Number(isMet), page.holds, key, this.#now)
      this.#sql.deleteGate.run(key)
      this.#sql.deleteMembers.run(key)
    }
  }

  #page(key: string): OpenPage | undefined {
    const known = this.#pages.get(key)
    if (known !== undefined) return known
    const row = this.#sql.gate.get(key)
    if (row === undefined) return undefined
    const page = { ...row }
    this.#pages.set(key, page)
    return page
  }
}
