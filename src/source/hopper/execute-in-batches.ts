import { nak, type Result, term } from '../../core/stream/result.js'
import { BatchResultCountError, InvalidResultError } from '../../core/stream/stream-errors.js'
import { describeValue } from '../../core/text/describe-value.js'
import { LazySignal } from '../../core/time/lazy-signal.js'
import type { Deliveries, Delivery } from '../loop/delivery.js'
import { LeaseLostError } from '../loop/errors.js'
import type { Execute } from '../loop/loop-run.js'
import { type Context, runContext } from '../message/context.js'
import { overrideOf } from '../message/decoded.js'
import type { Message } from '../message/message.js'
import type { BatchEntry, BatchHandler, BatchStep } from '../middleware/handler.js'
import { checked, resultOfError } from '../middleware/handler-result.js'
import { overrunsOf, type TimeLimit, withinTime } from './handler-timeout.js'
import { attemptOf, contextOf, extendLease, type HopperContext, inSpan, prepare, settleable } from './prepare.js'
import { endBatchSpan } from './telemetry.js'

/** Runs a handler on batches: each member has its own attempt, limit, decoding and middleware. */
export function executeInBatches(hopper: HopperContext, handler: BatchHandler): Execute<Message, Result> {
  const { o, telemetry } = hopper
  const { clock } = o.loop
  return async (deliveries) => {
    const startedAt = clock.monotonic()
    const span = telemetry.startBatchSpan(deliveries.map(({ item }) => item))
    telemetry.count.batches()
    let miscount: BatchResultCountError | undefined
    const innermost = callBatch(hopper, deliveries, handler, (error) => {
      miscount = error
      o.logger.error(error.message, { name: o.name })
    })
    const step = o.middleware.reduceRight<BatchStep>(
      (next, mw) => mw.mapBatch!(next), // Checked before the run: in batch mode every middleware has one.
      innermost,
    )
    let results: readonly Result[]
    try {
      const entries = await Promise.all(deliveries.map((delivery) => entryOf(hopper, delivery)))
      results = await inSpan(span, () => step(entries))
    } catch (error) {
      telemetry.count.handlerErrors()
      results = deliveries.map(() => resultOfError(error, clock.now))
    }
    const settled = deliveries.map((_, i) => settleable(hopper, checked(results[i])))
    const tookMs = clock.monotonic() - startedAt
    for (const delivery of deliveries) telemetry.handled(startedAt - delivery.pulledAt, tookMs)
    endBatchSpan(span, settled, miscount)
    return settled
  }
}

async function entryOf(hopper: HopperContext, delivery: Delivery<Message>): Promise<BatchEntry> {
  const attempt = attemptOf(hopper, delivery.item)
  return { ctx: contextOf(hopper, delivery, attempt), message: await prepare(hopper, delivery.item, attempt ?? 1) }
}

/** The user's batch handler, called with the members that are fit for it. */
function callBatch(
  hopper: HopperContext,
  deliveries: Deliveries<Message>,
  handler: BatchHandler,
  onMiscount: (error: BatchResultCountError) => void,
): BatchStep {
  const { o, telemetry } = hopper
  const call = o.handlerTimeoutMs === undefined ? handler : limited(hopper, handler, o.handlerTimeoutMs)
  return async (entries) => {
    const fit = entries.filter(({ message }) => overrideOf(message) === undefined).map(({ message }) => message)
    let resultOf: (index: number) => Result = () => nak(undefined)
    if (fit.length > 0) {
      try {
        const results: unknown = await call(batchContext(hopper, deliveries), fit)
        if (!Array.isArray(results))
          throw new InvalidResultError(`${describeValue(results)} instead of an array of results`)
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

function limited(hopper: HopperContext, handler: BatchHandler, timeoutMs: number): BatchHandler {
  return (ctx, messages) => {
    const limit: TimeLimit<readonly Result[]> = {
      clock: hopper.o.loop.clock,
      timeoutMs,
      timedOut: (error) => messages.map(() => nak(error)),
      ...overrunsOf(hopper, { subject: messages[0]?.subject, messages: messages.length }),
    }
    return withinTime(limit, ctx, (timed) => handler(timed, messages))
  }
}

/** What surrounds the call: its lease is that of every member which is still held. */
function batchContext(hopper: HopperContext, deliveries: Deliveries<Message>): Context {
  const extendAll = async () => {
    const held = deliveries.filter((delivery) => delivery.state === 'held')
    const extended = await Promise.allSettled(held.map((delivery) => extendLease(hopper, delivery)))
    // As long as one is left there is something to go on for; each lost one is delivered again by itself.
    if (extended.some((one) => one.status === 'fulfilled')) return
    throw extended.find((one) => one.status === 'rejected')?.reason ?? new LeaseLostError()
  }
  return runContext(new BatchSignal(deliveries), hopper.extender && extendAll, hopper.shared)
}

/** The signal of a batch: it aborts when that of every member has, since one lost lease is no reason to stop the others. */
class BatchSignal extends LazySignal {
  readonly #members: readonly LazySignal[]
  #isWatching = false

  constructor(members: readonly LazySignal[]) {
    super()
    this.#members = members
  }

  override get signal(): AbortSignal {
    if (!this.#isWatching) this.#watch()
    return super.signal
  }

  #watch(): void {
    this.#isWatching = true
    let left = this.#members.length
    for (const member of this.#members) {
      const onAbort = () => {
        left -= 1
        if (left === 0) this.abort(member.reason)
      }
      if (member.aborted) onAbort()
      else member.signal.addEventListener('abort', onAbort, { once: true })
    }
  }
}
