import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'

/** How fast clocks drift apart at most: an offset of a thousand seconds ago may be off by one second more. */
const DRIFT = 0.001

/**
 * The backend's time, learnt from its replies. A reply gives the time at some moment between request and reply, so a quick reply
 * is more exact than a slow one: a slow one counts only when the last quick one has become old. In between, monotonic time is
 * added, so setting the machine's clock does not move a deadline.
 */
export class BackendTime {
  readonly #clock: Clock
  #offset: number | undefined
  #uncertainMs: Ms = Infinity
  #learntMs: Ms = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Until the first reply, the time of this machine is used. */
  get isKnown(): boolean {
    return this.#offset !== undefined
  }

  now(): At {
    return this.#offset === undefined ? this.#clock.now() : Math.round(this.#clock.monotonic() + this.#offset)
  }

  /** How far the clock of this machine is ahead of the backend's, and how exactly that is known; undefined: unknown. */
  lead(): { readonly aheadMs: Ms; readonly giveOrTakeMs: Ms } | undefined {
    if (this.#offset === undefined) return undefined
    const driftMs = (this.#clock.monotonic() - this.#learntMs) * DRIFT
    return {
      aheadMs: Math.round(this.#clock.now() - this.now()),
      giveOrTakeMs: Math.ceil(this.#uncertainMs / 2 + driftMs),
    }
  }

  /** The backend's time was `at`, by a reply that came now to a request of this monotonic time. */
  learn(at: At, askedMs: Ms): void {
    const now = this.#clock.monotonic()
    const tookMs = now - askedMs
    const driftMs = (now - this.#learntMs) * DRIFT
    if (tookMs > this.#uncertainMs + driftMs && !this.#contradicts(at, now, tookMs, driftMs)) return
    this.#offset = at + tookMs / 2 - now
    this.#uncertainMs = tookMs
    this.#learntMs = now
  }

  /** Whether this contradicts what was learnt before: the backend's clock was set. */
  #contradicts(at: At, now: Ms, tookMs: Ms, driftMs: Ms): boolean {
    if (this.#offset === undefined) return false
    const missMs = Math.abs(at + tookMs / 2 - (now + this.#offset))
    return missMs > (tookMs + this.#uncertainMs) / 2 + driftMs + 1
  }
}
