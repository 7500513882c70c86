import type { Clock } from '../../core/time/clock.js'
import { LazySignal } from '../../core/time/lazy-signal.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import { HandlerTimeoutError } from '../errors.js'
import type { Context, ContextKey } from '../message/context.js'

/** What becomes of a call that takes too long. */
export interface TimeLimit<T> {
  readonly clock: Clock
  readonly timeoutMs: Ms
  /** What replaces its outcome. */
  readonly timedOut: (error: HandlerTimeoutError) => T
  /** It ended after all, but too late: no caller waits for it any more. */
  readonly late: () => void
}

/** Calls a handler with a limited time: then its signal aborts, and whatever it still comes to is discarded. */
export function withinTime<T>(
  limit: TimeLimit<T>,
  outer: Context,
  call: (ctx: Context) => MaybePromise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const own = new LazySignal()
    const outerSignal = outer.signal
    const onAbort = () => own.abort(outerSignal.reason)
    outerSignal.addEventListener('abort', onAbort, { once: true })
    if (outerSignal.aborted) onAbort()
    let isLate = false
    const cancel = limit.clock.after(limit.timeoutMs, () => {
      isLate = true
      outerSignal.removeEventListener('abort', onAbort)
      const error = new HandlerTimeoutError(limit.timeoutMs)
      own.abort(error)
      resolve(limit.timedOut(error))
    })
    const ended = (settle: () => void) => {
      if (isLate) {
        limit.late()
        return
      }
      cancel()
      outerSignal.removeEventListener('abort', onAbort)
      settle()
    }
    Promise.resolve()
      .then(() => call(new TimedContext(outer, own)))
      .then(
        (value) => ended(() => resolve(value)),
        (error) => ended(() => reject(error)),
      )
  })
}

/** The outer context with its own signal. */
class TimedContext implements Context {
  readonly #outer: Context
  readonly #own: LazySignal
  constructor(outer: Context, own: LazySignal) {
    this.#outer = outer
    this.#own = own
  }
  get signal(): AbortSignal {
    return this.#own.signal
  }
  get extendLease(): (() => Promise<void>) | undefined {
    return this.#outer.extendLease
  }
  get<T>(key: ContextKey<T>): T | undefined {
    return this.#outer.get(key)
  }
  with<T>(key: ContextKey<T>, value: T): Context {
    return new TimedContext(this.#outer.with(key, value), this.#own)
  }
}
