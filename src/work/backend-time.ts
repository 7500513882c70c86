import type { Clock } from '../core/clock.js'
import type { At, Ms } from '../core/time.js'

/** How fast clocks run apart at most: what was learnt a thousand seconds ago may be off by one more. */
const DRIFT = 0.001

/**
 * The backend's time, as far as its replies tell. A reply says what time it was somewhere between question and answer, so a
 * quick one tells more than a slow one: what a slow one says counts only when the last quick one has become old. Counted on
 * from there by monotonic time, so that nobody who sets the machine's clock moves a deadline.
 */
export class BackendTime {
  readonly #clock: Clock
  #offset: number | undefined
  #uncertainMs: Ms = Infinity
  #learntMs: Ms = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Until the backend has told, this machine's own time has to do. */
  get isKnown(): boolean {
    return this.#offset !== undefined
  }

  now(): At {
    return this.#offset === undefined ? this.#clock.now() : Math.round(this.#clock.monotonic() + this.#offset)
  }

  /** How far the clock of this machine is ahead of the backend's, and how exactly that is known; undefined while it is not. */
  lead(): { readonly aheadMs: Ms; readonly giveOrTakeMs: Ms } | undefined {
    if (this.#offset === undefined) return undefined
    const driftMs = (this.#clock.monotonic() - this.#learntMs) * DRIFT
    return {
      aheadMs: Math.round(this.#clock.now() - this.now()),
      giveOrTakeMs: Math.ceil(this.#uncertainMs / 2 + driftMs),
    }
  }

  /** The backend said that it was `at`, when asked at this monotonic time and answering now. */
  learn(at: At, askedMs: Ms): void {
    const now = this.#clock.monotonic()
    const tookMs = now - askedMs
    const driftMs = (now - this.#learntMs) * DRIFT
    if (tookMs > this.#uncertainMs + driftMs && !this.#contradicts(at, now, tookMs, driftMs)) return
    this.#offset = at + tookMs / 2 - now
    this.#uncertainMs = tookMs
    this.#learntMs = now
  }

  /** It cannot have been that time by what was learnt before: somebody has set the clock of the backend. */
  #contradicts(at: At, now: Ms, tookMs: Ms, driftMs: Ms): boolean {
    if (this.#offset === undefined) return false
    const missMs = Math.abs(at + tookMs / 2 - (now + this.#offset))
    return missMs > (tookMs + this.#uncertainMs) / 2 + driftMs + 1
  }
}
