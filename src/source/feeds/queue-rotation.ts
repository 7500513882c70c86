import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'

const LONGEST_WAIT_MS = 30_000

interface Served {
  readonly queue: string
  failures: number
  retryAt: Ms
}

/** One queue, and how many it may give at most. */
export interface Share {
  readonly queue: string
  readonly max: number
}

/**
 * Shares a worker's capacity fairly between its queues: each gets an equal part of it, and another one leads each time.
 * A queue that does not answer sits out for a while, longer each time, and does not delay the others.
 */
export class QueueRotation {
  readonly #served: readonly Served[]
  readonly #clock: Clock
  readonly #retryMs: Ms
  #lead = 0

  constructor(queues: readonly string[], clock: Clock, retryMs: Ms) {
    this.#served = queues.map((queue) => ({ queue, failures: 0, retryAt: 0 }))
    this.#clock = clock
    this.#retryMs = retryMs
  }

  /**
   * Who is asked, in order, and for how many; one round never asks for more than `capacity`. Where there are more queues than
   * that, they are asked in several rounds, until one has something.
   */
  rounds(capacity: number): readonly (readonly Share[])[] {
    const now = this.#clock.monotonic()
    const lead = this.#lead
    this.#lead = (lead + 1) % this.#served.length
    const inTurn = [...this.#served.slice(lead), ...this.#served.slice(0, lead)]
    const asked = inTurn.filter((one) => one.failures === 0 || one.retryAt <= now)
    const rounds: Share[][] = []
    for (let from = 0; from < asked.length; from += capacity) {
      const together = asked.slice(from, from + capacity)
      const each = Math.floor(capacity / together.length)
      const extra = capacity % together.length
      rounds.push(together.map(({ queue }, i) => ({ queue, max: i < extra ? each + 1 : each })))
    }
    return rounds
  }

  /** Which of the queues that were just asked did not answer. */
  heard(asked: readonly Share[], failed: readonly { readonly queue: string }[]): void {
    const now = this.#clock.monotonic()
    for (const one of this.#served) {
      if (!asked.some((share) => share.queue === one.queue)) continue
      if (failed.some((f) => f.queue === one.queue)) {
        one.failures += 1
        one.retryAt = now + doublingDelay(one.failures - 1, { baseMs: this.#retryMs, maxMs: LONGEST_WAIT_MS })
      } else {
        one.failures = 0
      }
    }
  }

  /** The earlier of `dueAt` and the next poll of a queue that sits out. */
  earlier(dueAt: At | undefined): At | undefined {
    const waiting = this.#served.filter((one) => one.failures > 0)
    if (waiting.length === 0) return dueAt
    const inMs = Math.min(...waiting.map((one) => one.retryAt)) - this.#clock.monotonic()
    const retryAt = this.#clock.now() + Math.max(0, inMs)
    // When all of them sit out, none can be polled before that, whatever is due: an earlier time would mean polling in a loop.
    if (dueAt === undefined || waiting.length === this.#served.length) return retryAt
    return Math.min(dueAt, retryAt)
  }
}
