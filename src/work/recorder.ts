import type { At } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Claimed, Envelope, EnvelopeHead } from '../ports/item.js'
import type { Delivery } from '../source/loop/delivery.js'
import { ActiveSet } from './active.js'
import { EventDesk } from './event-desk.js'
import type { WorkEvent } from './events.js'
import { Meters, type TypeMeters } from './meters.js'
import type { Registry } from './registry.js'
import { UNKNOWN_TYPE } from './settle.js'
import type { ResolvedSystemOptions } from './system-options.js'
import type { WorkSettling } from './work-settling.js'

/** Counts what happens and tells it: metrics, events, and what is active. Observers that throw disturb nobody. */
export class Recorder {
  readonly active = new ActiveSet()
  readonly #meters: Meters
  readonly #events: EventDesk

  constructor(o: ResolvedSystemOptions, registry: Registry) {
    this.#meters = new Meters(o.metrics)
    this.#events = new EventDesk(o.given.onEvent, registry)
  }

  /** The item is on its way to the backend: nothing is told of it before that is. */
  queueing(item: Envelope): void {
    if (this.#events.hasListeners) this.#events.owe(item.id, 'queued', queuedEvent(item, item.queueAt))
  }

  /** It did not get there. */
  notQueued(id: string): void {
    this.#events.pay(id, 'queued')
  }

  queued(item: Envelope, at: At): void {
    this.#countQueued(item, at)
    if (this.#events.hasListeners) this.#events.pay(item.id, 'queued', queuedEvent(item, at))
  }

  #countQueued(item: Envelope, at: At): void {
    const meters = this.#meters.of(item.type)
    meters.queued.inc()
    meters.lastQueued.set(at)
  }

  taken(delivery: Delivery<Claimed>): void {
    this.active.take(delivery)
    const meters = this.#meters.of(delivery.item.envelope.type)
    meters.active.add(1)
    meters.pending.add(1)
    meters.peak.max(meters.active.value())
  }

  started(delivery: Delivery<Claimed>, at: At): void {
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
  settling({ ran }: WorkSettling): void {
    if (!this.#events.hasListeners) return
    this.#events.owe(ran.item.envelope.id, ran.item.lease.fence)
    for (const { item } of childrenOf(ran.outcome)) this.#events.owe(item.id, 'queued')
  }

  /** It did not get there: another run of the item will tell what becomes of it. */
  notSettled({ ran }: WorkSettling): void {
    this.#events.pay(ran.item.envelope.id, ran.item.lease.fence)
    for (const { item } of childrenOf(ran.outcome)) this.#events.pay(item.id, 'queued')
  }

  /** It is no longer held here, whatever became of it. */
  left(delivery: Delivery<Claimed>): void {
    const meters = this.#meters.of(delivery.item.envelope.type)
    const wasRunning = this.active.isRunning(delivery)
    if (!this.active.leave(delivery)) return
    meters.active.add(-1)
    if (wasRunning) meters.running.add(-1)
    else meters.pending.add(-1)
  }

  lost(delivery: Delivery<Claimed>): void {
    this.#meters.of(delivery.item.envelope.type).leaseLost.inc()
    this.left(delivery)
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

  /** Durable: the children first, since they were queued before their parent ended. */
  settled(delivery: Delivery<Claimed>, settling: WorkSettling, at: At): void {
    this.left(delivery)
    const { envelope, lease } = settling.ran.item
    const children = childrenOf(settling.ran.outcome)
    for (const { item } of children) this.#countQueued(item, at)
    count(this.#meters.of(envelope.type), settling, at)
    if (!this.#events.hasListeners) return
    for (const { item } of children) this.#events.say(queuedEvent(item, at))
    this.#events.pay(envelope.id, lease.fence, eventOf(settling, at))
    for (const { item } of children) this.#events.pay(item.id, 'queued')
  }

  /** An item that was waiting ended, because it was cancelled here. */
  cancelled(item: EnvelopeHead, reason: string, at: At): void {
    this.#meters.of(item.type).cancelled.inc()
    if (this.#events.hasListeners) this.#events.emit({ kind: 'cancelled', ...ofItem(item), reason, at })
  }

  /** An item that was waiting ended, because no worker knows its type. */
  unrouted(item: EnvelopeHead, error: string, at: At): void {
    countDead(this.#meters.of(item.type), item, at, at)
    if (!this.#events.hasListeners) return
    this.#events.emit({
      kind: 'failed',
      ...ofItem(item),
      error,
      class: 'poison',
      rule: UNKNOWN_TYPE,
      willRetry: false,
      at,
    })
  }

  groupDone(groupId: string, result: unknown, at: At): void {
    if (this.#events.hasListeners) this.#events.emit({ kind: 'group-done', groupId, result, at })
  }
}

function count(meters: TypeMeters, { ran, told }: WorkSettling, at: At): void {
  const { envelope } = ran.item
  const tookMs = Math.max(0, ran.endedAt - ran.startedAt)
  switch (told.kind) {
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
      meters.delayTime.observe(told.delayMs)
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
      unreachable(told)
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

function eventOf({ ran, told, value }: WorkSettling, at: At): WorkEvent | undefined {
  const { envelope } = ran.item
  const of = { ...ofItem(envelope), at }
  switch (told.kind) {
    case 'succeeded':
      return { kind: 'succeeded', ...of, result: value }
    case 'retried':
    case 'dead': {
      const { error, class: failureClass, rule } = told
      return { kind: 'failed', ...of, error, class: failureClass, rule, willRetry: told.kind === 'retried' }
    }
    case 'deferred':
      return { kind: 'deferred', ...of, runAt: told.runAt }
    case 'expired':
      return { kind: 'expired', ...of, deadline: envelope.deadline ?? at }
    case 'cancelled':
      return { kind: 'cancelled', ...of, reason: told.why }
    case 'released':
      return undefined
    default:
      return unreachable(told)
  }
}

function queuedEvent(item: Envelope, at: At): WorkEvent {
  return { kind: 'queued', ...ofItem(item), startAt: item.startAt, at }
}

function childrenOf(outcome: WorkSettling['ran']['outcome']) {
  return outcome.kind === 'returned' ? outcome.children : []
}

function ofItem(item: EnvelopeHead) {
  const { id, type, groupId, attempt } = item
  return { id, type, groupId, attempt }
}
