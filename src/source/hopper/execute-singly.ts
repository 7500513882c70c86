import type { Span } from '@opentelemetry/api'
import { nak, type Result } from '../../core/stream/result.js'
import type { Clock } from '../../core/time/clock.js'
import { isPromise, type MaybePromise, type Ms } from '../../core/time/time.js'
import type { Delivery } from '../loop/delivery.js'
import type { Execute } from '../loop/loop-run.js'
import { overrideOf } from '../message/decoded.js'
import type { Message } from '../message/message.js'
import { chainWith } from '../middleware/chain.js'
import type { Handler } from '../middleware/handler.js'
import { checked, resultOfError } from '../middleware/handler-result.js'
import { isVerdict } from '../middleware/verdict.js'
import { overrunsOf, type TimeLimit, withinTime } from './handler-timeout.js'
import { attemptOf, contextOf, type HopperContext, inSpan, prepare, settleable } from './prepare.js'
import { endSpan } from './telemetry.js'

/** Runs a handler on single messages: attempt, delivery limit, decoding, middleware, and a result whatever happens. */
export function executeSingly(hopper: HopperContext, handler: Handler): Execute<Message, Result> {
  const { o, telemetry } = hopper
  const { clock } = o.loop
  const chained = chainWith(
    { allowAnyOrder: o.allowAnyOrder },
    safely(hopper, innermost(hopper, handler)),
    o.middleware,
  )
  // Middleware may throw as well.
  const run = o.middleware.length === 0 ? chained : safely(hopper, chained)

  const once = (
    delivery: Delivery<Message>,
    attempt: number | undefined,
    span: Span | undefined,
  ): MaybePromise<Result> => {
    const runPrepared = (message: Message): MaybePromise<Result> => {
      const ctx = contextOf(hopper, delivery, attempt)
      return span === undefined ? run(ctx, message) : inSpan(span, () => run(ctx, message))
    }
    const message = prepare(hopper, delivery.item, attempt ?? 1)
    return message instanceof Promise ? message.then(runPrepared) : runPrepared(message)
  }

  /**
   * Tries again in place, as long as the result asks for another delivery. A message that is given up leaves its lane though its dead
   * letter could not be stored: the verdict has to reach the stream, or the next process would run the message again.
   */
  const insist = async (
    delivery: Delivery<Message>,
    firstAttempt: number | undefined,
    span: Span | undefined,
    stopping: AbortSignal,
  ): Promise<Result> => {
    let attempt = firstAttempt
    let result = await once(delivery, attempt, span)
    while (result.action === 'nak' && !isVerdict(result.note)) {
      if (!(await sleptUndisturbed(clock, result.requeueMs, [stopping, delivery.signal]))) break
      attempt = (attempt ?? 1) + 1
      result = await once(delivery, attempt, span)
    }
    return result
  }

  return ([delivery], stopping) => {
    const startedAt = clock.monotonic()
    const attempt = attemptOf(hopper, delivery.item)
    const span = telemetry.startSpan(delivery.item, attempt ?? 1)
    const end = (found: Result): readonly [Result] => {
      const result = settleable(hopper, found)
      telemetry.handled(startedAt - delivery.pulledAt, clock.monotonic() - startedAt)
      endSpan(span, result)
      return [result]
    }
    const result = o.ordering === 'strict' ? insist(delivery, attempt, span, stopping) : once(delivery, attempt, span)
    return isPromise(result) ? result.then(end) : end(result)
  }
}

/** The user's handler in its limited time, unless the message was found wanting before its turn. */
function innermost(hopper: HopperContext, handler: Handler): Handler {
  const { handlerTimeoutMs } = hopper.o
  const timed = handlerTimeoutMs === undefined ? handler : limited(hopper, handler, handlerTimeoutMs)
  return (ctx, message) => overrideOf(message) ?? timed(ctx, message)
}

/**
 * A handler with everything that can go wrong in it turned into a result, so that callers always see one. Not an async
 * function: it is passed once or twice per message, and a handler that answers synchronously costs no promise.
 */
function safely({ o, telemetry }: HopperContext, handler: Handler): Handler {
  const failed = (error: unknown): Result => {
    telemetry.count.handlerErrors()
    return resultOfError(error, o.loop.clock.now)
  }
  return (ctx, message) => {
    try {
      const result = handler(ctx, message)
      return isPromise(result) ? Promise.resolve(result).then(checked, failed) : checked(result)
    } catch (error) {
      return failed(error)
    }
  }
}

function limited(hopper: HopperContext, handler: Handler, timeoutMs: Ms): Handler {
  return (ctx, message) => {
    const limit: TimeLimit<Result> = {
      clock: hopper.o.loop.clock,
      timeoutMs,
      timedOut: nak,
      ...overrunsOf(hopper, { subject: message.subject, cursor: message.cursor.toString() }),
    }
    return withinTime(limit, ctx, (timed) => handler(timed, message))
  }
}

/** Sleeps, unless one of the signals aborts: then it wakes immediately and answers false. */
function sleptUndisturbed(clock: Clock, ms: Ms, signals: readonly AbortSignal[]): Promise<boolean> {
  return new Promise((resolve) => {
    const wakeUp = (isRested: boolean) => {
      cancel()
      // `AbortSignal.any` would hang on the signal of the run until that ends, once for every wait.
      for (const signal of signals) signal.removeEventListener('abort', onAbort)
      resolve(isRested)
    }
    const onAbort = () => wakeUp(false)
    const cancel = clock.after(ms, () => wakeUp(true))
    for (const signal of signals) signal.addEventListener('abort', onAbort)
    if (signals.some((signal) => signal.aborted)) wakeUp(false)
  })
}
