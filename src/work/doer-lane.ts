import type { Doer } from '../core/doer/doer.js'
import type { Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Delivery } from '../source/loop/delivery.js'

/** How many wait beside a doer at first. */
const FIRST_ALLOWANCE = 4
const LARGEST_ALLOWANCE = 512
const SHORTEST_BACK_MS = 1

/**
 * A doer, and the few that wait beside it because it had no room for them. A plain queue cannot be asked for the items of one
 * doer only, so what is fetched for others brings some for a doer that is full. A doer that uses up what waits gets more at
 * hand, and what is still too much comes back soon; one that is slow keeps little from other instances and others' places.
 */
export class DoerLane {
  readonly doer: Doer
  readonly #longestBackMs: Ms
  #waiting: Delivery<Claimed>[] = []
  /** Taken for this doer and not settled durably. */
  held = 0
  /** Handed to the doer and not ended. */
  #inside = 0
  #allowance = FIRST_ALLOWANCE
  #backMs: Ms
  #judgedMs: Ms | undefined
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

  /** Takes what the doer has no room for, or says after how long it may come again. */
  wait(delivery: Delivery<Claimed>, nowMs: Ms): 'taken' | { readonly giveBackAfterMs: Ms } {
    // Nothing of ours is in it, so nothing of ours will make room.
    if (this.#inside === 0) return { giveBackAfterMs: this.#longestBackMs }
    this.#judge(nowMs)
    if (this.#waiting.length >= this.#allowance) return { giveBackAfterMs: this.#backMs }
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
  next(): Delivery<Claimed> | undefined {
    if (this.doer.available() <= 0) return undefined
    const next = this.#waiting.shift()
    if (next === undefined) this.#isUsedUp = true
    return next
  }

  /** It could not be handed over. */
  putBack(delivery: Delivery<Claimed>): void {
    this.#waiting.unshift(delivery)
  }

  clear(): void {
    this.#waiting = []
  }

  /** Once per look at most: more if the doer used up what it had, less and later if it did not. */
  #judge(nowMs: Ms): void {
    if (this.#isUsedUp && this.#judgedMs !== undefined) {
      this.#allowance = Math.min(LARGEST_ALLOWANCE, this.#allowance * 2)
      this.#backMs = Math.max(Math.min(SHORTEST_BACK_MS, this.#longestBackMs), this.#backMs / 8)
    } else if (this.#judgedMs !== undefined) {
      if (nowMs - this.#judgedMs < this.#backMs) return
      if (this.#backMs === this.#longestBackMs) this.#allowance = Math.max(1, Math.floor(this.#allowance / 2))
      this.#backMs = Math.min(this.#longestBackMs, this.#backMs * 2)
    }
    this.#isUsedUp = false
    this.#judgedMs = nowMs
  }
}
