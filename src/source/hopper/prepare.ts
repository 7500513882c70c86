import { context, type Span, trace } from '@opentelemetry/api'
import { nak, type Result, term } from '../../core/stream/result.js'
import type { MaybePromise } from '../../core/time/time.js'
import { DeliveryLimitError } from '../errors.js'
import type { Capabilities, Subscription } from '../inlets/subscription.js'
import type { Delivery } from '../loop/delivery.js'
import { LeaseLostError } from '../loop/errors.js'
import { messageAttempt } from '../message/attempt.js'
import { background, type Context, runContext, withAttempt } from '../message/context.js'
import { PreparedMessage } from '../message/decoded.js'
import type { Message } from '../message/message.js'
import { resultOfError } from '../middleware/handler-result.js'
import { hostKey } from '../middleware/middleware-host.js'
import type { ResolvedHopperOptions } from './resolve-hopper-options.js'
import type { SourceTelemetry } from './telemetry.js'

/** What one run of a hopper needs to turn messages into results. */
export interface HopperContext {
  readonly o: ResolvedHopperOptions
  readonly telemetry: SourceTelemetry
  /** Where the subscription has leases that can be extended. */
  readonly extender: Capabilities['leaseExtender'] | undefined
  /** What every run's context has in common: the hopper itself, for its middleware. */
  readonly shared: Context
}

export function hopperContext(o: ResolvedHopperOptions, telemetry: SourceTelemetry, sub: Subscription): HopperContext {
  const host = {
    name: o.name,
    clock: o.loop.clock,
    logger: o.logger,
    countIdempotencyError: telemetry.count.idempotencyErrors,
  }
  return { o, telemetry, extender: sub.capability('leaseExtender'), shared: background().with(hostKey, host) }
}

/** Decodes, and finds out whether the handler should see the message at all. */
export function prepare(hopper: HopperContext, message: Message, attempt: number): MaybePromise<Message> {
  const { maxDeliveries, registry } = hopper.o
  if (attempt > maxDeliveries) {
    return new PreparedMessage(message, { override: term(new DeliveryLimitError(attempt, maxDeliveries)) })
  }
  return registry === undefined ? message : decode(hopper, message)
}

async function decode({ o }: HopperContext, message: Message): Promise<Message> {
  try {
    return new PreparedMessage(message, { decoded: { ok: true, value: await o.registry!.decode(message) } })
  } catch (error) {
    return new PreparedMessage(message, { override: resultOfError(error, o.loop.clock.now) })
  }
}

/** Which attempt this delivery is, as far as it is known. */
export function attemptOf({ o }: HopperContext, message: Message): number | undefined {
  const { attempt, malformedHeader } = messageAttempt(message)
  if (malformedHeader !== undefined) warnOnce(o, message.subject, malformedHeader)
  return attempt
}

const warned = new WeakMap<object, Set<string>>()

function warnOnce(o: ResolvedHopperOptions, subject: string, header: string): void {
  const subjects = warned.get(o) ?? new Set<string>()
  warned.set(o, subjects)
  if (subjects.has(subject) || subjects.size >= 1_000) return
  subjects.add(subject)
  o.logger.warn('A message carries an attempt header that is no attempt; it is ignored', { subject, header })
}

/** What surrounds the run of one message. */
export function contextOf(hopper: HopperContext, delivery: Delivery<Message>, attempt: number | undefined): Context {
  const extend = hopper.extender && (() => extendLease(hopper, delivery))
  const ctx = runContext(delivery, extend, hopper.shared)
  return attempt === undefined ? ctx : withAttempt(ctx, attempt)
}

/** Extends a lease on the handler's behalf. A lease that turns out to be lost ends the run like a heartbeat's would. */
export async function extendLease({ o, extender }: HopperContext, delivery: Delivery<Message>): Promise<void> {
  const now = o.loop.clock.monotonic()
  const isKept = delivery.state === 'held' && (await extender?.extend(delivery.item)) !== false
  if (!isKept) {
    delivery.lose()
    throw delivery.reason ?? new LeaseLostError()
  }
  delivery.leasedAt = Math.max(delivery.leasedAt, now)
}

/** `inProgress` without a lease to extend would never come back: nothing would bring it. */
export function settleable(hopper: HopperContext, result: Result): Result {
  if (result.action !== 'inProgress' || hopper.extender !== undefined) return result
  hopper.o.logger.warn('inProgress() was returned, but this subscription has no lease that could lapse: it is a nak', {
    name: hopper.o.name,
  })
  return nak(undefined)
}

/** Runs `fn` with the span active, so that what a handler starts becomes its child. */
export function inSpan<T>(span: Span | undefined, fn: () => T): T {
  return span === undefined ? fn() : context.with(trace.setSpan(context.active(), span), fn)
}
