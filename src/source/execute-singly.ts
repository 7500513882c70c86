import type { Span } from '@opentelemetry/api'
import type { Clock } from '../core/clock.js'
import { nak, type Result } from '../core/result.js'
import type { Maybe, Ms } from '../core/time.js'
import { chainWith } from './chain.js'
import { checked } from './checked-result.js'
import { overrideOf } from './decoded.js'
import type { Handler } from './handler.js'
import { type TimeLimit, withinTime } from './handler-timeout.js'
import type { Delivery } from './loop/delivery.js'
import type { Execute } from './loop/run.js'
import type { Message } from './message.js'
import { attemptOf, contextOf, inSpan, prepare, settleable, type Tools } from './prepare.js'
import { resultOfError } from './result-of-error.js'
import { endSpan } from './telemetry.js'

/** Runs a handler on single messages: attempt, delivery limit, decoding, middleware, and a result whatever happens. */
export function executeSingly(tools: Tools, handler: Handler): Execute<Message, Result> {
  const { o, telemetry } = tools
  const { clock } = o.loop
  const chained = chainWith({ allowAnyOrder: o.allowAnyOrder }, safely(tools, innermost(tools, handler)), o.middleware)
  // Middleware may throw as well.
  const run = o.middleware.length === 0 ? chained : safely(tools, chained)

  const once = (delivery: Delivery<Message>, attempt: number | undefined, span: Span | undefined): Maybe<Result> => {
    const runPrepared = (message: Message): Maybe<Result> => {
      const ctx = contextOf(tools, delivery, attempt)
      return span === undefined ? run(ctx, message) : inSpan(span, () => run(ctx, message))
    }
    const message = prepare(tools, delivery.item, attempt ?? 1)
    return message instanceof Promise ? message.then(runPrepared) : runPrepared(message)
  }

  /** Tries again in place, as long as it is told to deliver again. */
  const insist = async (
    delivery: Delivery<Message>,
    firstAttempt: number | undefined,
    span: Span | undefined,
    stopping: AbortSignal,
  ): Promise<Result> => {
    let attempt = firstAttempt
    let result = await once(delivery, attempt, span)
    while (result.action === 'nak') {
      if (!(await sleptUndisturbed(clock, result.requeueMs, [stopping, delivery.signal]))) break
      attempt = (attempt ?? 1) + 1
      result = await once(delivery, attempt, span)
    }
    return result
  }

  return ([delivery], stopping) => {
    const startedAt = clock.monotonic()
    const attempt = attemptOf(tools, delivery.item)
    const span = telemetry.startSpan(delivery.item, attempt ?? 1)
    const end = (found: Result): readonly [Result] => {
      const result = settleable(tools, found)
      telemetry.handled(startedAt - delivery.pulledAt, clock.monotonic() - startedAt)
      endSpan(span, result)
      return [result]
    }
    const result = o.ordering === 'strict' ? insist(delivery, attempt, span, stopping) : once(delivery, attempt, span)
    return isLater(result) ? result.then(end) : end(result)
  }
}

/** The user's handler in its limited time, unless the message was found wanting before its turn. */
function innermost(tools: Tools, handler: Handler): Handler {
  const { handlerTimeoutMs } = tools.o
  const timed = handlerTimeoutMs === undefined ? handler : limited(tools, handler, handlerTimeoutMs)
  return (ctx, message) => overrideOf(message) ?? timed(ctx, message)
}

/**
 * A handler with everything that can go wrong in it turned into a result, so that whoever is around it sees one. Not an async
 * function: it is passed once or twice per message, and a handler that answers at once costs no promise.
 */
function safely({ o, telemetry }: Tools, handler: Handler): Handler {
  const failed = (error: unknown): Result => {
    telemetry.count.handlerErrors()
    return resultOfError(error, o.loop.clock.now)
  }
  return (ctx, message) => {
    try {
      const result = handler(ctx, message)
      return isLater(result) ? Promise.resolve(result).then(checked, failed) : checked(result)
    } catch (error) {
      return failed(error)
    }
  }
}

function isLater(value: unknown): value is Promise<Result> {
  return typeof (value as Partial<Promise<Result>> | null | undefined)?.then === 'function'
}

function limited(tools: Tools, handler: Handler, timeoutMs: Ms): Handler {
  const limit: TimeLimit<Result> = {
    clock: tools.o.loop.clock,
    timeoutMs,
    timedOut: nak,
    late: tools.telemetry.count.lateResults,
  }
  return (ctx, message) => withinTime(limit, ctx, (timed) => handler(timed, message))
}

/** Sleeps, unless one of the signals aborts: then it wakes at once and answers false. */
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
