import type { At } from '../../core/time/time.js'
import { gateVerdict } from '../../ports/gate.js'
import type { EffectOf } from '../../ports/settlement.js'
import type { Notifications } from '../shared/notifications.js'
import { COMPLETED, WAITING } from '../shared/state-codes.js'
import { HAS_TAGS } from './item-flags.js'
import { makeReady } from './places.js'
import type { Statements } from './sql.js'

interface Page {
  readonly heldId: string
  need: number
  remaining: number
  readonly of: 'done' | 'success'
}

/** The gates that a batch changes: opened, notified, and decided once, at the end of the batch. */
export class GateTable {
  readonly #sql: Statements
  readonly #now: At
  readonly #notifications: Notifications
  readonly #pages = new Map<string, Page>()
  #hasMembers: boolean | undefined

  constructor(sql: Statements, now: At, notifications: Notifications) {
    this.#sql = sql
    this.#now = now
    this.#notifications = notifications
  }

  /** Whether a gate waits for this item, which is yet to come. */
  awaits(id: string): boolean {
    this.#hasMembers ??= this.#sql.anyMember.get()?.[0] === 1
    return this.#hasMembers && this.#sql.gatesOf.get(id) !== undefined
  }

  /** A gate that is open already stays as it is. */
  open(effect: EffectOf<'openGate'>): void {
    if (this.#page(effect.key) !== undefined) return
    const page: Page = { heldId: effect.heldId, need: effect.need, remaining: 0, of: effect.of }
    this.#pages.set(effect.key, page)
    for (const member of new Set(effect.members)) {
      const [, , , state = 0, , keepUntil] = this.#sql.itemRow.get(member) ?? []
      if (state >= COMPLETED && (keepUntil ?? Number.POSITIVE_INFINITY) > this.#now) {
        if (page.of === 'done' || state === COMPLETED) page.need -= 1
        continue
      }
      page.remaining += 1
      this.#hasMembers = true
      this.#sql.addMember.run(effect.key, member)
      this.#sql.markGated.run(member)
    }
  }

  /** The first notice of a member counts. */
  notify(key: string, member: string, completed: boolean): void {
    const page = this.#page(key)
    if (page === undefined || this.#sql.tellMember.run(key, member) === 0) return
    page.remaining -= 1
    if (completed || page.of === 'done') page.need -= 1
  }

  /** An item ended: every gate that waits for it counts it. */
  notifyAll(member: string, completed: boolean): void {
    for (const [key] of this.#sql.gatesOf.all(member)) this.notify(key, member, completed)
  }

  /** An item came that a gate holds; the gate may have decided already. */
  check(key: string): void {
    this.#page(key)
  }

  /** What it held has ended or is gone: the gate is over. */
  dropHolding(id: string): void {
    const keys = new Set(this.#sql.gatesHolding.all(id).map(([key]) => key))
    for (const [key, page] of this.#pages) if (page.heldId === id) keys.add(key)
    for (const key of keys) this.#delete(key)
  }

  /** Frees what the decided gates hold, and writes the rest. */
  close(): void {
    for (const [key, page] of this.#pages) {
      const met = gateVerdict(page.need, page.remaining)
      // A gate may be opened before the item that it holds comes.
      if (met === undefined || this.#sql.itemRow.get(page.heldId) === undefined) {
        this.#sql.putGate.run(key, page.heldId, page.need, page.remaining, page.of)
        continue
      }
      const freed = this.#sql.freeItem.get(this.#now, Number(met), page.heldId, key, this.#now)
      if (freed !== undefined) {
        const [queue, seq, flags] = freed
        makeReady(this.#sql, [seq])
        this.#notifications.wake(queue, this.#now)
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
    const [heldId, need, remaining, of] = row
    const page = { heldId, need, remaining, of }
    this.#pages.set(key, page)
    return page
  }
}
