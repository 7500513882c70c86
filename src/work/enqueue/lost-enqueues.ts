import { onExit, warnAtExit } from '../../core/process/on-exit.js'
import { errorMessage } from '../../core/text/error-text.js'
import { peekString } from '../../core/text/safe-read.js'
import { hidePasswords } from '../../core/text/secrets.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { WaitBeforeClose } from '../../ports/find-ledger.js'

const CODE = 'MILLRACE_ENQUEUE_LOST'

/** How long failures are gathered while others may follow. */
const GATHER_MS: Ms = 1_000
/** A program that goes on enqueuing while the backend is down is not warned each time. */
const LEAST_GAP_MS: Ms = 60_000

/**
 * Enqueues that failed unnoticed: no caller awaited them, and the system has no `onError`. They are counted, and reported in one
 * process warning, at the latest before the backend closes or the process exits.
 */
export class LostEnqueues {
  readonly #clock: Clock
  readonly #beforeClose: ((wait: WaitBeforeClose) => () => void) | undefined
  #count = 0
  #first: unknown
  #cancel: (() => void) | undefined
  #reportedMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, beforeClose?: (wait: WaitBeforeClose) => () => void) {
    this.#clock = clock
    this.#beforeClose = beforeClose
  }

  add(error: unknown): void {
    if (this.#count === 0) this.#first = error
    this.#count += 1
    this.#cancel ??= this.#plan()
  }

  /** No enqueue is in flight any more, so the count is complete. */
  settled(): void {
    if (this.#clock.monotonic() >= this.#reportedMs + LEAST_GAP_MS) this.report()
  }

  /** Warns of what was counted, now. */
  report(): void {
    const warning = this.#takeWarning()
    if (warning !== undefined) process.emitWarning(warning, { type: 'MillraceWarning', code: CODE })
  }

  /** Reports later, or as soon as the backend closes or the process exits. */
  #plan(): () => void {
    const pauseMs = Math.max(GATHER_MS, this.#reportedMs + LEAST_GAP_MS - this.#clock.monotonic())
    const ends = [
      this.#clock.after(pauseMs, () => this.report()),
      this.#beforeClose?.(async () => this.report()),
      onExit(() => this.#reportAtExit()),
    ]
    return () => {
      for (const end of ends) end?.()
    }
  }

  #reportAtExit(): void {
    const warning = this.#takeWarning()
    if (warning !== undefined) warnAtExit(warning, CODE)
  }

  /** The text of the warning that is due; the count starts again. */
  #takeWarning(): string | undefined {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#count === 0) return undefined
    const [count, first] = [this.#count, this.#first]
    this.#count = 0
    this.#first = undefined
    this.#reportedMs = this.#clock.monotonic()
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
