import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ClaimedItem, Envelope, EnvelopeHead } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { Registry } from '../define/registry.js'
import type { ResolvedSystemOptions } from '../options.js'
import type { RunPendingSettlement } from '../settle/pending-settlement.js'
import { UNKNOWN_TYPE } from '../settle/settle.js'
import { ActiveSet } from '../worker/active-items.js'
import type { LoopPulse } from '../worker/loop-pulse.js'
import type { WorkEvent } from './events.js'
import { OrderedEvents } from './events.js'
import type { WorkLog } from './log.js'
import { type TypeMeters, TypeMetrics } from './type-metrics.js'

/** Records what happens: metrics, events, the log, and the active items. Errors of observers are ignored. */
export class Recorder {
  readonly active = new ActiveSet()
  readonly #log: WorkLog
  readonly #pulse: LoopPulse
  readonly #meters: TypeMetrics
  readonly #events: OrderedEvents

  constructor(o: ResolvedSystemOptions, registry: Registry, pulse: LoopPulse) {
    this.#log = o.log
    this.#pulse = pulse
    this.#meters = new TypeMetrics(o.metrics)
    this.#events = new OrderedEvents(o.given.onEvent, registry)
  }

  /** The item is on its way to the backend: its other events wait for `queued`. */
  queueing(item: Envelope): void {
    if (this.#events.hasListeners) this.#events.expect(item.id, 'queued', queuedEvent(item, item.queueAt))
  }

  /** It was not accepted. */
  notQueued(id: string): void {
    this.#events.resolve(id, 'queued')
  }

  queued(item: Envelope, at: At): void {
    this.#countQueued(item, at)
    if (this.#events.hasListeners) this.#events.resolve(item.id, 'queued', queuedEvent(item, at))
  }

  #countQueued(item: Envelope, at: At): void {
    const meters = this.#meters.of(item.type)
    meters.queued.inc()
    meters.lastQueued.set(at)
  }

  taken(delivery: Delivery<ClaimedItem>): void {
    delivery.onLost = this.#leaseLost
    this.active.take(delivery)
    const meters = this.#meters.of(delivery.item.envelope.type)
    meters.active.add(1)
    meters.pending.add(1)
    meters.peak.max(meters.active.value())
  }

  started(delivery: Delivery<ClaimedItem>, at: At): void {
    const { envelope } = delivery.item
    const meters = this.#meters.of(envelope.type)
    this.active.start(delivery, at)
    meters.pending.add(-1)
    meters.running.add(1)
    meters.started.inc()
    meters.lastStarted.set(at)
    meters.waitTime.observe(Math.max(0, at - envelope.startAt))
    if (this.#events.hasListeners) this.#events.emit({ kind: 'started', ...ofItem(envelope), at })
  }

  /** Its outcome is on its way to the backend, with the children it queues. */
  settling({ ran }: RunPendingSettlement): void {
    if (!this.#events.hasListeners) return
    this.#events.expect(ran.item.envelope.id, ran.item.lease.fence)
    for (const { item } of childrenOf(ran.outcome)) this.#events.expect(item.id, 'queued')
  }

  /** Its outcome was not written: another run of the item will report what becomes of it. */
  notSettled({ ran }: RunPendingSettlement): void {
    this.#events.resolve(ran.item.envelope.id, ran.item.lease.fence)
    for (const { item } of childrenOf(ran.outcome)) this.#events.resolve(item.id, 'queued')
  }

  /** This process no longer holds it, whatever became of it. */
  left(delivery: Delivery<ClaimedItem>): void {
    const meters = this.#meters.of(delivery.item.envelope.type)
    const wasRunning = this.active.isRunning(delivery)
    if (!this.active.leave(delivery)) return
    meters.active.add(-1)
    if (wasRunning) meters.running.add(-1)
    else meters.pending.add(-1)
  }

  lost(delivery: Delivery<ClaimedItem>): void {
    this.#meters.of(delivery.item.envelope.type).leaseLost.inc()
    // Found only as its outcome was written: no heartbeat had said so.
    if (delivery.onLost !== undefined) this.#leaseLost(delivery)
    this.left(delivery)
  }

  /** Once for each lease, as soon as it is known: the handler may go on for long. */
  readonly #leaseLost = (delivery: Delivery<ClaimedItem>): void => {
    delivery.onLost = undefined
    this.#pulse.lostLease()
    this.#log.leaseLost(delivery)
  }

  commitFailed(type: string): void {
    this.#meters.of(type).commitErrors.inc()
  }

  crashed(type: string): void {
    this.#meters.of(type).crashed.inc()
  }

  removed(count: number): void {
    this.#meters.removed(count)
  }

  rescheduled(item: Envelope, byMs: number): void {
    const meters = this.#meters.of(item.type)
    meters.rescheduled.inc()
    meters.rescheduleTime.observe(byMs)
  }

  /** The outcome is durable. The children come first: they were queued before their parent ended. */
  settled(delivery: Delivery<ClaimedItem>, settling: RunPendingSettlement, at: At): void {
    this.left(delivery)
    const { envelope, lease } = settling.ran.item
    const children = childrenOf(settling.ran.outcome)
    for (const { item } of children) this.#countQueued(item, at)
    count(this.#meters.of(envelope.type), settling, at)
    this.#log.settled(settling)
    if (!this.#events.hasListeners) return
    for (const { item } of children) this.#events.emitNow(queuedEvent(item, at))
    this.#events.resolve(envelope.id, lease.fence, eventOf(settling, at))
    for (const { item } of children) this.#events.resolve(item.id, 'queued')
  }

  /** An item that was waiting ended, because it was cancelled here. */
  cancelled(item: EnvelopeHead, reason: string, at: At): void {
    this.#meters.of(item.type).cancelled.inc()
    this.#log.cancelled(item, reason)
    if (this.#events.hasListeners) this.#events.emit({ kind: 'cancelled', ...ofItem(item), reason, at })
  }

  /** An item that was waiting ended, because no worker knows its type. */
  unrouted(item: EnvelopeHead, error: string, at: At): void {
    const failed = { error, class: 'poison', rule: UNKNOWN_TYPE } as const
    countDead(this.#meters.of(item.type), item, at, at)
    this.#log.unrouted(item, failed)
    if (!this.#events.hasListeners) return
    this.#events.emit({ kind: 'failed', ...ofItem(item), ...failed, willRetry: false, at })
  }

  groupDone(groupId: string, result: unknown, at: At): void {
    if (this.#events.hasListeners) this.#events.emit({ kind: 'group-done', groupId, result, at })
  }
}

function count(meters: TypeMeters, { ran, summary }: RunPendingSettlement, at: At): void {
  const { envelope } = ran.item
  const tookMs = Math.max(0, ran.endedAt - ran.startedAt)
  switch (summary.kind) {
    case 'succeeded':
      meters.succeeded.inc()
      meters.successTime.observe(tookMs)
      meters.lastSucceeded.set(at)
      break
    case 'dead':
      countDead(meters, envelope, ran.endedAt, at)
      if (ran.outcome.kind === 'threw') meters.errorTime.observe(tookMs)
      return
    case 'retried':
      meters.retried.inc()
      return
    case 'deferred':
      meters.deferred.inc()
      meters.delayTime.observe(summary.delayMs)
      return
    case 'expired':
      meters.expired.inc()
      return
    case 'cancelled':
      meters.cancelled.inc()
      return
    case 'released':
      return
    default:
      unreachable(summary)
  }
  countEnded(meters, envelope, ran.endedAt)
}

function countDead(meters: TypeMeters, item: EnvelopeHead, endedAt: At, at: At): void {
  meters.failed.inc()
  meters.lastFailed.set(at)
  countEnded(meters, item, endedAt)
}

function countEnded(meters: TypeMeters, { queueAt, attempt }: EnvelopeHead, at: At): void {
  meters.totalTime.observe(Math.max(0, at - queueAt))
  meters.attempts.observe(attempt)
}

function eventOf({ ran, summary, value }: RunPendingSettlement, at: At): WorkEvent | undefined {
  const { envelope } = ran.item
  const of = { ...ofItem(envelope), at }
  switch (summary.kind) {
    case 'succeeded':
      return { kind: 'succeeded', ...of, result: value }
    case 'retried':
    case 'dead': {
      const { error, class: failureClass, rule } = summary
      const detail = ran.outcome.kind === 'threw' ? ran.outcome.detail : undefined
      const failed = { error, class: failureClass, rule, willRetry: summary.kind === 'retried' }
      return { kind: 'failed', ...of, ...failed, ...(detail === undefined ? {} : { detail }) }
    }
    case 'deferred':
      return { kind: 'deferred', ...of, runAt: summary.runAt }
    case 'expired':
      return { kind: 'expired', ...of, deadline: envelope.deadline ?? at }
    case 'cancelled':
      return { kind: 'cancelled', ...of, reason: summary.why }
    case 'released':
      return undefined
    default:
      return unreachable(summary)
  }
}

function queuedEvent(item: Envelope, at: At): WorkEvent {
  return { kind: 'queued', ...ofItem(item), startAt: item.startAt, at }
}

function childrenOf(outcome: RunPendingSettlement['ran']['outcome']) {
  return outcome.kind === 'returned' ? outcome.children : []
}

function ofItem(item: EnvelopeHead) {
  const { id, type, groupId, attempt } = item
  return { id, type, groupId, attempt }
}
