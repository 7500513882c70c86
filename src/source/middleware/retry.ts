import { callable, clock, flag, integer, listener, readOptions, unchecked } from '../../core/read-options.js'
import { type BackoffOption, resolveBackoff } from '../../core/retry/backoff.js'
import { decideRetry } from '../../core/retry/decide-retry.js'
import { exhausted, nakAfter, type Result } from '../../core/stream/result.js'
import type { Clock, Random } from '../../core/time/clock.js'
import { unreachable } from '../../core/unreachable.js'
import { ShutdownDeadlineError } from '../loop/errors.js'
import { attempt, type Context } from '../message/context.js'
import { defineMiddleware } from './define-middleware.js'
import type { Middleware } from './handler.js'
import { clockIn, hostKey } from './middleware-host.js'

/** Options of {@link retry}. */
export interface RetryMiddlewareOptions {
  /** Deliveries in all, the first included; `Infinity` is allowed. Default 5. */
  readonly maxAttempts?: number
  /** The schedule: options of the built-in one (from 100 ms doubling to 30 s, full jitter), or one of your own. */
  readonly backoff?: BackoffOption
  /** Chance for the built-in schedule. Default `Math.random`. */
  readonly random?: Random
  /** Time, for the decision. Default: the hopper's. The built-in schedule does not read it. */
  readonly clock?: Clock
  /** A delay that the handler asked for is a floor under the schedule. Default true. */
  readonly honourHandlerDelay?: boolean
  /** Called when a schedule answers with nonsense. Default: the hopper's logger. */
  readonly warn?: (message: string) => void
}

/**
 * Retries what may succeed later: a retryable failure is delivered again with a growing delay, until the attempts are used
 * up and it is terminated with its class kept. Everything else passes through as the same object. It never sleeps, holds no
 * state, and reads the attempt from the context.
 *
 * @example
 * ```ts
 * new Hopper({ middleware: [dlq(letters), retry({ maxAttempts: 3, backoff: { baseMs: 100, maxMs: 1_000 } })] })
 * ```
 */
export function retry(options?: RetryMiddlewareOptions): Middleware {
  const given = readOptions('retry', options, {
    maxAttempts: integer({ min: 1, default: 5, infinite: true }),
    backoff: unchecked,
    random: callable(Math.random),
    clock: clock(undefined),
    honourHandlerDelay: flag(true),
    warn: listener,
  })
  const { maxAttempts, warn } = given
  const backoff = resolveBackoff('retry.backoff', given.backoff, given.random, (message) => {
    if (warn !== undefined) warn(message)
    else deciding?.get(hostKey)?.logger.warn(message, { name: deciding.get(hostKey)?.name })
  })
  /** Whose delay is being asked for. Nothing else runs meanwhile: a schedule answers synchronously. */
  let deciding: Context | undefined

  return defineMiddleware<never>({
    kind: 'retry',
    maxAttempts,
    after(ctx, _message, result): Result {
      if (result.action !== 'nak' || result.noEscalate === true) return result
      deciding = ctx
      const decision = decideRetry({
        verdict: { class: result.class, rule: 'result' },
        attempt: attempt(ctx)[0],
        maxAttempts,
        delayMs: (n) => backoff.delay(n),
        floorMs: result.requeueMs,
        honourFloor: given.honourHandlerDelay,
        now: clockIn(ctx, given.clock).now(),
      })
      switch (decision.kind) {
        case 'retry':
          return nakAfter(decision.delayMs, result.error, { nextAttempt: decision.nextAttempt })
        case 'giveUp':
          // That its process had to stop says nothing about the message, however many attempts it has had.
          return ctx.signal.reason instanceof ShutdownDeadlineError ? result : exhausted(result.error)
        case 'defer':
        case 'expire':
          return result // A result carries neither a deferral nor a deadline.
        default:
          return unreachable(decision)
      }
    },
  })
}
