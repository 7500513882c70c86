import { nak, type Result, term } from '../core/result.js'
import { show } from '../core/show.js'
import { BatchResultCountError, InvalidResultError } from '../core/stream-errors.js'
import { BatchSignal } from './batch-signal.js'
import { checked } from './checked-result.js'
import { type Context, runContext } from './context.js'
import { overrideOf } from './decoded.js'
import type { BatchEntry, BatchHandler, BatchStep } from './handler.js'
import { type TimeLimit, withinTime } from './handler-timeout.js'
import type { Deliveries, Delivery } from './loop/delivery.js'
import { LeaseLostError } from './loop/errors.js'
import type { Execute } from './loop/run.js'
import type { Message } from './message.js'
import { attemptOf, contextOf, extendLease, inSpan, prepare, settleable, type Tools } from './prepare.js'
import { resultOfError } from './result-of-error.js'
import { endBatchSpan } from './telemetry.js'

/** Runs a handler on batches: each member has its own attempt, limit, decoding and middleware. */
export function executeInBatches(tools: Tools, handler: BatchHandler): Execute<Message, Result> {
  const { o, telemetry } = tools
  const { clock } = o.loop
  return async (deliveries) => {
    const startedAt = clock.monotonic()
    const span = telemetry.startBatchSpan(deliveries.map(({ item }) => item))
    telemetry.count.batches()
    let miscount: BatchResultCountError | undefined
    const innermost = callBatch(tools, deliveries, handler, (error) => {
      miscount = error
      o.logger.error(error.message, { name: o.name })
    })
    const step = o.middleware.reduceRight<BatchStep>(
      (next, mw) => mw.mapBatch!(next), // Checked before the run: in batch mode every middleware has one.
      innermost,
    )
    let results: readonly Result[]
    try {
      const entries = await Promise.all(deliveries.map((delivery) => entryOf(tools, delivery)))
      results = await inSpan(span, () => step(entries))
    } catch (error) {
      telemetry.count.handlerErrors()
      results = deliveries.map(() => resultOfError(error, clock.now))
    }
    const settled = deliveries.map((_, i) => settleable(tools, checked(results[i])))
    const tookMs = clock.monotonic() - startedAt
    for (const delivery of deliveries) telemetry.handled(startedAt - delivery.pulledAt, tookMs)
    endBatchSpan(span, settled, miscount)
    return settled
  }
}

async function entryOf(tools: Tools, delivery: Delivery<Message>): Promise<BatchEntry> {
  const attempt = attemptOf(tools, delivery.item)
  return { ctx: contextOf(tools, delivery, attempt), message: await prepare(tools, delivery.item, attempt ?? 1) }
}

/** The user's batch handler, called with the members that are fit for it. */
function callBatch(
  tools: Tools,
  deliveries: Deliveries<Message>,
  handler: BatchHandler,
  onMiscount: (error: BatchResultCountError) => void,
): BatchStep {
  const { o, telemetry } = tools
  const call = o.handlerTimeoutMs === undefined ? handler : limited(tools, handler, o.handlerTimeoutMs)
  return async (entries) => {
    const fit = entries.filter(({ message }) => overrideOf(message) === undefined).map(({ message }) => message)
    let resultOf: (index: number) => Result = () => nak(undefined)
    if (fit.length > 0) {
      try {
        const results: unknown = await call(batchContext(tools, deliveries), fit)
        if (!Array.isArray(results)) throw new InvalidResultError(`${show(results)} instead of an array of results`)
        const isMiscounted = results.length !== fit.length
        const miscount = isMiscounted ? new BatchResultCountError(fit.length, results.length) : undefined
        if (miscount !== undefined) onMiscount(miscount)
        resultOf = (index) => (index < results.length ? checked(results[index]) : term(miscount))
      } catch (error) {
        telemetry.count.handlerErrors()
        resultOf = () => resultOfError(error, o.loop.clock.now)
      }
    }
    let taken = 0
    return entries.map(({ message }) => overrideOf(message) ?? resultOf(taken++))
  }
}

function limited(tools: Tools, handler: BatchHandler, timeoutMs: number): BatchHandler {
  return (ctx, messages) => {
    const limit: TimeLimit<readonly Result[]> = {
      clock: tools.o.loop.clock,
      timeoutMs,
      timedOut: (error) => messages.map(() => nak(error)),
      late: tools.telemetry.count.lateResults,
    }
    return withinTime(limit, ctx, (timed) => handler(timed, messages))
  }
}

/** What surrounds the call: its lease is that of every member which is still held. */
function batchContext(tools: Tools, deliveries: Deliveries<Message>): Context {
  const extendAll = async () => {
    const held = deliveries.filter((delivery) => delivery.state === 'held')
    const extended = await Promise.allSettled(held.map((delivery) => extendLease(tools, delivery)))
    // As long as one is left there is something to go on for; each lost one is delivered again by itself.
    if (extended.some((one) => one.status === 'fulfilled')) return
    throw extended.find((one) => one.status === 'rejected')?.reason ?? new LeaseLostError()
  }
  return runContext(new BatchSignal(deliveries), tools.extender && extendAll, tools.shared)
}
