import type { At, Ms } from '../../core/time/time.js'
import { KEEP_DEAD_MS, WORKER_FORGOTTEN_MS } from '../../ports/limits.js'
import { forget } from './item-effects.js'
import { SINGLE } from './item-flags.js'
import { listOf } from './places.js'
import type { Statements } from './sql.js'

/** Removed of each kind in one step: bounded, so that no transaction waits long. */
const STEP = 500
/** How often a step is taken when the last one has found nothing left. */
const PAUSE_MS: Ms = 1_000
const NOTIFICATIONS_KEPT_MS: Ms = 60_000
const ACTIONS_KEPT = 10_000

/** How much has been removed because it had been kept long enough. */
export interface Removed {
  readonly items: number
  readonly groups: number
  readonly keys: number
  readonly deadLetters: number
}

/** Removes what has been kept long enough, a little with each write: nothing grows forever, and no caller waits for it. */
export class Sweeper {
  #nextAt: At = Number.NEGATIVE_INFINITY
  #removed: Removed = { items: 0, groups: 0, keys: 0, deadLetters: 0 }
  #unreported = 0

  get removed(): Removed {
    return this.#removed
  }

  /** How many ended items have gone since this was last asked. */
  takeUnreported(): number {
    const unreported = this.#unreported
    this.#unreported = 0
    return unreported
  }

  /** Items that a write removed before a step came to them. */
  note(items: number): void {
    if (items === 0) return
    this.#unreported += items
    this.#removed = { ...this.#removed, items: this.#removed.items + items }
  }

  /** Takes a step if it is time for one. Returns what to note once the transaction is written. */
  step(sql: Statements, now: At): (() => void) | undefined {
    // A clock that was set back must not stop it.
    if (now < this.#nextAt && now > this.#nextAt - PAUSE_MS - 1) return undefined
    const { removed, isFull } = sweep(sql, now)
    return () => {
      this.#nextAt = isFull ? now : now + PAUSE_MS
      this.note(removed.items)
      const { items, groups, keys, deadLetters } = this.#removed
      this.#removed = {
        items,
        groups: groups + removed.groups,
        keys: keys + removed.keys,
        deadLetters: deadLetters + removed.deadLetters,
      }
    }
  }
}

function sweep(sql: Statements, now: At): { readonly removed: Removed; readonly isFull: boolean } {
  const items = sql.goneItems.all(now, STEP)
  const plain = items.filter(([, , flags]) => (flags & ~SINGLE) === 0)
  sql.deleteItems.run(listOf(plain.map(([seq]) => seq)))
  for (const [seq, id, flags] of items) if (flags & ~SINGLE) forget(sql, seq, id, flags)
  const groups = sql.goneGroups.all(now, STEP)
  for (const [id, isWatched] of groups) {
    sql.deleteGroup.run(id)
    if (isWatched === 1) sql.deleteWatchers.run('g', id)
  }
  const keys = sql.sweepKeys.run(now, STEP)
  const notifications = sql.sweepNotifications.run(now - NOTIFICATIONS_KEPT_MS, STEP)
  const deadLetters = sql.sweepDeadLetters.run(now - KEEP_DEAD_MS, STEP)
  sql.sweepWorkers.run(now - WORKER_FORGOTTEN_MS)
  sql.sweepActions.run(ACTIONS_KEPT)
  const isFull = [items.length, groups.length, keys, notifications, deadLetters].some((count) => count >= STEP)
  return { removed: { items: items.length, groups: groups.length, keys, deadLetters }, isFull }
}
