import type { Clock } from '../core/clock.js'
import { errorMessage } from '../core/error-text.js'
import { peekString } from '../core/safe-read.js'
import { hidePasswords } from '../core/secrets.js'
import type { Ms } from '../core/time.js'

/** How long failures are gathered while others may follow. */
const GATHER_MS: Ms = 1_000
/** A program that goes on enqueuing while the backend is away is not told each time. */
const LEAST_GAP_MS: Ms = 60_000

/**
 * Enqueues that failed where nothing could hear of it: no caller awaited them, and the system has no `onError`. They are counted,
 * and said in one process warning instead of one each.
 */
export class LostEnqueues {
  readonly #clock: Clock
  #count = 0
  #first: unknown
  #cancel: (() => void) | undefined
  #saidMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(error: unknown): void {
    if (this.#count === 0) this.#first = error
    this.#count += 1
    const pauseMs = Math.max(GATHER_MS, this.#saidMs + LEAST_GAP_MS - this.#clock.monotonic())
    this.#cancel ??= this.#clock.after(pauseMs, () => this.say())
  }

  /** No enqueue is under way any more: unless they were said a moment ago, the count is complete. */
  settled(): void {
    if (this.#clock.monotonic() >= this.#saidMs + LEAST_GAP_MS) this.say()
  }

  /** Says what has been gathered, now. */
  say(): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#count === 0) return
    const [count, first] = [this.#count, this.#first]
    this.#count = 0
    this.#first = undefined
    this.#saidMs = this.#clock.monotonic()
    const code = peekString(first, 'code')
    const reason = `${code === undefined ? '' : `${code}: `}${hidePasswords(errorMessage(first))}`
    process.emitWarning(
      (count === 1
        ? '1 enqueued item was not accepted, and no caller awaited it. '
        : `${count} enqueued items were not accepted, and no caller awaited them. `) +
        `Await accepted() of the handles, use enqueueMany, or give createWork({ onError }). The first reason: ${reason}`,
      { type: 'MillraceWarning', code: 'MILLRACE_ENQUEUE_LOST' },
    )
  }
}
