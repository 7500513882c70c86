import type { Clock } from '../core/clock.js'
import { errorMessage } from '../core/error-text.js'
import { onExit, warnAtExit } from '../core/process-end.js'
import { peekString } from '../core/safe-read.js'
import { hidePasswords } from '../core/secrets.js'
import type { Ms } from '../core/time.js'
import type { WaitBeforeClose } from '../ports/before-close.js'

const CODE = 'MILLRACE_ENQUEUE_LOST'

/** How long failures are gathered while others may follow. */
const GATHER_MS: Ms = 1_000
/** A program that goes on enqueuing while the backend is away is not told each time. */
const LEAST_GAP_MS: Ms = 60_000

/**
 * Enqueues that failed where nothing could hear of it: no caller awaited them, and the system has no `onError`. They are counted,
 * and said in one process warning instead of one each. What is not said yet is said before the backend closes or the process exits.
 */
export class LostEnqueues {
  readonly #clock: Clock
  readonly #beforeClose: ((wait: WaitBeforeClose) => () => void) | undefined
  #count = 0
  #first: unknown
  #cancel: (() => void) | undefined
  #saidMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, beforeClose?: (wait: WaitBeforeClose) => () => void) {
    this.#clock = clock
    this.#beforeClose = beforeClose
  }

  add(error: unknown): void {
    if (this.#count === 0) this.#first = error
    this.#count += 1
    this.#cancel ??= this.#plan()
  }

  /** No enqueue is under way any more: unless they were said a moment ago, the count is complete. */
  settled(): void {
    if (this.#clock.monotonic() >= this.#saidMs + LEAST_GAP_MS) this.say()
  }

  /** Says what has been gathered, now. */
  say(): void {
    const warning = this.#taken()
    if (warning !== undefined) process.emitWarning(warning, { type: 'MillraceWarning', code: CODE })
  }

  /** Says it later, or sooner if the backend closes or the process exits before that. */
  #plan(): () => void {
    const pauseMs = Math.max(GATHER_MS, this.#saidMs + LEAST_GAP_MS - this.#clock.monotonic())
    const ends = [
      this.#clock.after(pauseMs, () => this.say()),
      this.#beforeClose?.(async () => this.say()),
      onExit(() => this.#sayAtExit()),
    ]
    return () => {
      for (const end of ends) end?.()
    }
  }

  #sayAtExit(): void {
    const warning = this.#taken()
    if (warning !== undefined) warnAtExit(warning, CODE)
  }

  /** The text of the warning that is due. What it tells counts as said. */
  #taken(): string | undefined {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#count === 0) return undefined
    const [count, first] = [this.#count, this.#first]
    this.#count = 0
    this.#first = undefined
    this.#saidMs = this.#clock.monotonic()
    const code = peekString(first, 'code')
    const reason = `${code === undefined ? '' : `${code}: `}${hidePasswords(errorMessage(first))}`
    return (
      (count === 1
        ? '1 enqueued item was not accepted, and no caller awaited it. '
        : `${count} enqueued items were not accepted, and no caller awaited them. `) +
      `Await accepted() of the handles, use enqueueMany, or give createWork({ onError }). The first reason: ${reason}`
    )
  }
}
