import type { At } from '../../core/time.js'
import type { Effect } from '../../ports/settlement.js'
import type { Statements } from './sql.js'
import { COMPLETED, HAS_TAGS, WAITING } from './states.js'
import type { Told } from './told.js'

interface Page {
  readonly holds: string
  need: number
  left: number
  readonly of: 'done' | 'success'
}

/** The gates that a batch touches: opened, told, and decided once, at the end of the batch. */
export class GateBook {
  readonly #sql: Statements
  readonly #now: At
  readonly #told: Told
  readonly #pages = new Map<string, Page>()
  #hasMembers: boolean | undefined

  constructor(sql: Statements, now: At, told: Told) {
    this.#sql = sql
    this.#now = now
    this.#told = told
  }

  /** Whether a gate waits for this item, which is yet to come. */
  awaits(id: string): boolean {
    this.#hasMembers ??= this.#sql.anyMember.get()?.[0] === 1
    return this.#hasMembers && this.#sql.gatesOf.get(id) !== undefined
  }

  /** A gate that is open already stays as it is. */
  open(effect: Extract<Effect, { do: 'openGate' }>): void {
    if (this.#page(effect.key) !== undefined) return
    const page: Page = { holds: effect.holds, need: effect.need, left: 0, of: effect.of }
    this.#pages.set(effect.key, page)
    for (const member of new Set(effect.members)) {
      const [, , , state = 0, , goneAt] = this.#sql.itemRow.get(member) ?? []
      if (state >= COMPLETED && (goneAt ?? Number.POSITIVE_INFINITY) > this.#now) {
        if (page.of === 'done' || state === COMPLETED) page.need -= 1
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
    if (page === undefined || this.#sql.tellMember.run(key, member) === 0) return
    page.left -= 1
    if (ok || page.of === 'done') page.need -= 1
  }

  /** An item ended: every gate that waits for it hears. */
  tellAll(member: string, ok: boolean): void {
    for (const [key] of this.#sql.gatesOf.all(member)) this.tell(key, member, ok)
  }

  /** An item came that a gate holds; the gate may have decided already. */
  look(key: string): void {
    this.#page(key)
  }

  /** What it held has ended or is gone: the gate is over. */
  dropHolding(id: string): void {
    const keys = new Set(this.#sql.gatesHolding.all(id).map(([key]) => key))
    for (const [key, page] of this.#pages) if (page.holds === id) keys.add(key)
    for (const key of keys) this.#delete(key)
  }

  /** Frees what the decided gates hold, and writes the rest. */
  close(): void {
    for (const [key, page] of this.#pages) {
      const isMet = page.need <= 0
      const isDecided = isMet || page.need > page.left
      // A gate may be opened before the item that it holds comes.
      if (!isDecided || this.#sql.itemRow.get(page.holds) === undefined) {
        this.#sql.putGate.run(key, page.holds, page.need, page.left, page.of)
        continue
      }
      const freed = this.#sql.freeItem.get(this.#now, Number(isMet), page.holds, key, this.#now)
      if (freed !== undefined) {
        const [queue, seq, flags] = freed
        this.#told.nudge(queue, this.#now)
        if (flags & HAS_TAGS) this.#sql.stateTags.run(WAITING, seq)
      }
      this.#delete(key)
    }
  }

  #delete(key: string): void {
    this.#pages.delete(key)
    this.#sql.deleteGate.run(key)
    this.#sql.deleteMembers.run(key)
  }

  #page(key: string): Page | undefined {
    const known = this.#pages.get(key)
    if (known !== undefined) return known
    const row = this.#sql.gate.get(key)
    if (row === undefined) return undefined
    const [holds, need, left, of] = row
    const page = { holds, need, left, of }
    this.#pages.set(key, page)
    return page
  }
}
