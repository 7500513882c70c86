import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time/time.js'
import type { EngineContext } from '../engine-context.js'

/** The event loop was blocked for so long that heartbeats came late: leases may be lost, and their work runs twice. */
class EventLoopDelayError extends MillraceError {
  constructor(delayMs: Ms, limitMs: Ms, types: readonly string[]) {
    super(
      'EVENT_LOOP_DELAY',
      `The event loop of this process was blocked for about ${Math.round(delayMs)} ms, over the ${Math.round(limitMs)} ms that ` +
        `heartbeats can spare. These types ran meanwhile: ${types.join(', ')}. Move long calculations to a worker thread, ` +
        'or pause between their parts; or raise `visibility`.',
      { facts: { delayMs: Math.round(delayMs), types: types.join(', ') } },
    )
  }
}

/** Reports when a process that runs work blocks its event loop. One timer, only while something runs. */
export class EventLoopDelay {
  readonly #context: EngineContext
  readonly #limitMs: Ms
  /** What ran at any time since the last check: the handler that blocked the loop may have ended before the check. */
  readonly #ran = new Set<string>()
  #cancel: (() => void) | undefined

  constructor(context: EngineContext) {
    this.#context = context
    this.#limitMs = Math.ceil(context.o.visibility / 3)
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
    const { o, recorder, pulse, failed } = this.#context
    const limitMs = this.#limitMs
    const dueMs = o.clock.monotonic() + limitMs
    this.#cancel = o.clock.after(limitMs, () => {
      const delayMs = o.clock.monotonic() - dueMs
      this.#cancel = undefined
      pulse.delayed(delayMs)
      if (delayMs > limitMs) failed(new EventLoopDelayError(delayMs, limitMs, [...this.#ran]), 'queue')
      this.#ran.clear()
      for (const type of recorder.active.runningTypes()) this.#ran.add(type)
      if (this.#ran.size > 0) this.#arm()
    })
  }
}
