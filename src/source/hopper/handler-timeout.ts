import type { Clock } from '../../core/time/clock.js'
import { LazySignal } from '../../core/time/lazy-signal.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import { HandlerTimeoutError } from '../errors.js'
import type { Context, ContextKey } from '../message/context.js'
import type { HopperContext } from './prepare.js'

/** What becomes of a call that takes too long. */
export interface TimeLimit<T> {
  readonly clock: Clock
  readonly timeoutMs: Ms
  /** What replaces its outcome. */
  readonly timedOut: (error: HandlerTimeoutError) => T
  /** How long its end is waited for once its time is up. */
  readonly maxOverrunMs: Ms
  /** Its time is up and it goes on: what it holds stays taken until it ends. */
  readonly overran: () => void
  /** It went on for longer than its end is waited for: what comes next runs beside it. */
  readonly abandoned: () => void
  /** It ended after all, but too late: its outcome is discarded. */
  readonly late: () => void
}

/** What a hopper reports of handlers that overrun, and how long it waits for their end. */
export function overrunsOf({ o, telemetry }: HopperContext, facts: Readonly<Record<string, unknown>>) {
  const { name, logger, handlerTimeoutMs, maxOverrunMs } = o
  return {
    maxOverrunMs,
    late: telemetry.count.lateResults,
    overran() {
      telemetry.count.overruns()
      logger.warn('A handler has outlived its time; its lane stays taken until it ends', {
        ...{ name, handlerTimeoutMs, maxOverrunMs, ...facts },
      })
    },
    abandoned() {
      telemetry.count.overrunsAbandoned()
      logger.error('A handler that has outlived its time did not end; its lane goes on beside it, out of order', {
        ...{ name, handlerTimeoutMs, maxOverrunMs, ...facts },
      })
    },
  }
}

/**
 * Calls a handler with a limited time: then its signal aborts, and whatever it still comes to is discarded. The answer waits for
 * its end, for a limited time as well: until then nothing may begin that must not run beside it.
 */
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
    let endOverrun = () => {}
    const cancel = limit.clock.after(limit.timeoutMs, () => {
      isLate = true
      outerSignal.removeEventListener('abort', onAbort)
      const error = new HandlerTimeoutError(limit.timeoutMs)
      // A handler that ends as soon as its signal says so is no overrun.
      const cancelReport = limit.clock.after(0, limit.overran)
      const cancelWait = limit.clock.after(limit.maxOverrunMs, () => {
        limit.abandoned()
        resolve(limit.timedOut(error))
      })
      endOverrun = () => {
        cancelReport()
        cancelWait()
        resolve(limit.timedOut(error))
      }
      own.abort(error)
    })
    const ended = (settle: () => void) => {
      if (isLate) {
        limit.late()
        endOverrun()
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
