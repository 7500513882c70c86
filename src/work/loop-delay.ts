import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/error.js'
import type { Ms } from '../core/time.js'

/** The event loop stood still for so long that heartbeats came late: leases may be lost, and the work runs twice. */
export class EventLoopDelayError extends MillraceError {
  constructor(delayMs: Ms, limitMs: Ms, types: readonly string[]) {
    super(
      'EVENT_LOOP_DELAY',
      `The event loop of this process stood still for about ${Math.round(delayMs)} ms, over the ${Math.round(limitMs)} ms that ` +
        `heartbeats can spare. These types ran meanwhile: ${types.join(', ')}. Let long calculations go to a worker thread, ` +
        'or pause between their parts; or raise `visibility`.',
      { facts: { delayMs: Math.round(delayMs), types: types.join(', ') } },
    )
  }
}

/** Reports when a process that runs work blocks its event loop. One timer, only while something runs. */
export class LoopDelay {
  readonly #clock: Clock
  readonly #limitMs: Ms
  readonly #running: () => Iterable<string>
  readonly #report: (error: EventLoopDelayError) => void
  /** What ran at any time since the last look: who blocks the loop may have ended before anybody can look. */
  readonly #ran = new Set<string>()
  #cancel: (() => void) | undefined

  constructor(options: {
    readonly clock: Clock
    readonly limitMs: Ms
    readonly running: () => Iterable<string>
    readonly report: (error: EventLoopDelayError) => void
  }) {
    this.#clock = options.clock
    this.#limitMs = options.limitMs
    this.#running = options.running
    this.#report = options.report
  }

  started(type: string): void {
    this.#ran.add(type)
    if (this.#cancel === undefined) this.#arm()
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#ran.clear()
  }

  #arm(): void {
    const dueMs = this.#clock.monotonic() + this.#limitMs
    this.#cancel = this.#clock.after(this.#limitMs, () => {
      const delayMs = this.#clock.monotonic() - dueMs
      this.#cancel = undefined
      if (delayMs > this.#limitMs) this.#report(new EventLoopDelayError(delayMs, this.#limitMs, [...this.#ran]))
      this.#ran.clear()
      for (const type of this.#running()) this.#ran.add(type)
      if (this.#ran.size > 0) this.#arm()
    })
  }
}
