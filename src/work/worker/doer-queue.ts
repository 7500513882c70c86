import type { Doer } from '../../core/doer/doer.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'

/** How many may wait for a doer at first. */
const FIRST_ALLOWANCE = 4
const LARGEST_ALLOWANCE = 512
const SHORTEST_BACK_MS = 1

/**
 * A doer, and the few deliveries that wait because it had no room for them. A plain queue cannot be asked for the items of one
 * doer only, so a claim for others brings some for a doer that is full. A doer that uses up what waits may have more waiting, and
 * the rest comes back soon; a slow doer keeps little from other processes.
 */
export class DoerQueue {
  readonly doer: Doer
  readonly #longestBackMs: Ms
  #waiting: Delivery<ClaimedItem>[] = []
  /** Taken for this doer and not settled durably. */
  held = 0
  /** What waits is about to be handed over, as far as there is room by then. */
  isPumpDue = false
  /** Handed to the doer and not ended. */
  #inside = 0
  #allowance = FIRST_ALLOWANCE
  #backMs: Ms
  #adaptedMs: Ms | undefined
  #isUsedUp = false

  constructor(doer: Doer, longestBackMs: Ms) {
    this.doer = doer
    this.#longestBackMs = longestBackMs
    this.#backMs = Math.min(SHORTEST_BACK_MS, longestBackMs)
  }

  get inside(): number {
    return this.#inside
  }

  get hasRoom(): boolean {
    return this.#waiting.length === 0 && this.doer.available() > 0
  }

  /** Takes what the doer has no room for, or returns after how long it may be claimed again. */
  wait(delivery: Delivery<ClaimedItem>, nowMs: Ms): 'taken' | { readonly releaseAfterMs: Ms } {
    // None of our tasks is in it, so none of them will make room.
    if (this.#inside === 0) return { releaseAfterMs: this.#longestBackMs }
    this.#adapt(nowMs)
    if (this.#waiting.length >= this.#allowance) return { releaseAfterMs: this.#backMs }
    this.#waiting.push(delivery)
    return 'taken'
  }

  entered(): void {
    this.#inside += 1
  }

  ended(): void {
    this.#inside -= 1
  }

  /** The next of those that wait, if the doer has room for it. */
  next(): Delivery<ClaimedItem> | undefined {
    if (this.doer.available() <= 0) return undefined
    const next = this.#waiting.shift()
    if (next === undefined) this.#isUsedUp = true
    return next
  }

  /** It could not be handed over. */
  putBack(delivery: Delivery<ClaimedItem>): void {
    this.#waiting.unshift(delivery)
  }

  clear(): void {
    this.#waiting = []
  }

  /** Adapts, at most once per claim: more if the doer used up what waited, less and later if it did not. */
  #adapt(nowMs: Ms): void {
    if (this.#isUsedUp && this.#adaptedMs !== undefined) {
      this.#allowance = Math.min(LARGEST_ALLOWANCE, this.#allowance * 2)
      this.#backMs = Math.max(Math.min(SHORTEST_BACK_MS, this.#longestBackMs), this.#backMs / 8)
    } else if (this.#adaptedMs !== undefined) {
      if (nowMs - this.#adaptedMs < this.#backMs) return
      if (this.#backMs === this.#longestBackMs) this.#allowance = Math.max(1, Math.floor(this.#allowance / 2))
      this.#backMs = Math.min(this.#longestBackMs, this.#backMs * 2)
    }
    this.#isUsedUp = false
    this.#adaptedMs = nowMs
  }
}
