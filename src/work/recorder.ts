import type { At } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Claimed, Envelope } from '../ports/item.js'
import type { Delivery } from '../source/loop/delivery.js'
import { ActiveSet } from './active.js'
import type { WorkEvent } from './events.js'
import { Meters } from './meters.js'
import type { Registry } from './registry.js'
import type { WorkSettling } from './runner.js'
import type { ResolvedSystemOptions } from './system-options.js'

/** Counts what happens and tells it: metrics, events, and what is active. Observers that throw disturb nobody. */
export class Recorder {
  readonly active = new ActiveSet()
  readonly #meters: Meters
  readonly #registry: Registry
  readonly #onEvent: ((event: WorkEvent) => void) | undefined
  readonly #hasListeners: boolean

  constructor(o: ResolvedSystemOptions, registry: Registry) {
    this.#meters = new Meters(o.metrics)
    this.#registry = registry
    this.#onEvent = o.given.onEvent
    this.#hasListeners =
      this.#onEvent !== undefined || [...registry.definitions].some((def) => def.options.onEvent !== undefined)
  }

  queued(item: Envelope, at: At): void {
    const meters = this.#meters.of(item.type)
    meters.queued.inc()
    meters.lastQueued.set(at)
    if (this.#hasListeners) {
      this.#emit(item.type, { kind: 'queued', ...ofItem(item), startAt: item.startAt, at })
    }
  }

  taken(delivery: Delivery<Claimed>): void {
    this.active.take(delivery)
    const meters = this.#meters.of(delivery.item.envelope.type)
    meters.active.add(1)
    meters.pending.add(1)
    meters.peak.max(meters.active.value())
    if (delivery.item.crashes > 0) meters.crashed.inc()
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
    if (this.#hasListeners) this.#emit(envelope.type, { kind: 'started', ...ofItem(envelope), at })
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

  rescheduled(item: Envelope, byMs: number): void {
    const meters = this.#meters.of(item.type)
    meters.rescheduled.inc()
    meters.rescheduleTime.observe(byMs)
  }

  settled(delivery: Delivery<Claimed>, settling: WorkSettling, at: At): void {
    this.left(delivery)
    const { ran, told } = settling
    const { envelope } = ran.item
    const meters = this.#meters.of(envelope.type)
    const hasRun = ran.outcome.kind === 'returned' || ran.outcome.kind === 'threw'
    const tookMs = Math.max(0, ran.endedAt - ran.startedAt)
    const endsAfter = () => {
      meters.totalTime.observe(Math.max(0, at - envelope.queueAt))
      meters.attempts.observe(envelope.attempt)
    }
    switch (told.kind) {
      case 'succeeded':
        meters.succeeded.inc()
        meters.successTime.observe(tookMs)
        meters.lastSucceeded.set(at)
        endsAfter()
        if (this.#hasListeners) {
          this.#emit(envelope.type, { kind: 'succeeded', ...ofItem(envelope), result: settling.value, at })
        }
        return
      case 'retried':
        meters.retried.inc()
        if (this.#hasListeners) {
          const { error, class: failure, rule } = told
          this.#emit(envelope.type, {
            kind: 'failed',
            ...ofItem(envelope),
            error,
            class: failure,
            rule,
            willRetry: true,
            at,
          })
        }
        return
      case 'dead':
        meters.failed.inc()
        meters.lastFailed.set(at)
        if (hasRun) meters.errorTime.observe(tookMs)
        endsAfter()
        if (this.#hasListeners) {
          const { error, class: failure, rule } = told
          this.#emit(envelope.type, {
            kind: 'failed',
            ...ofItem(envelope),
            error,
            class: failure,
            rule,
            willRetry: false,
            at,
          })
        }
        return
      case 'deferred':
        meters.deferred.inc()
        meters.delayTime.observe(told.delayMs)
        if (this.#hasListeners) {
          this.#emit(envelope.type, { kind: 'deferred', ...ofItem(envelope), runAt: told.runAt, at })
        }
        return
      case 'expired':
        meters.expired.inc()
        if (this.#hasListeners) {
          this.#emit(envelope.type, { kind: 'expired', ...ofItem(envelope), deadline: envelope.deadline ?? at, at })
        }
        return
      default:
        unreachable(told)
    }
  }

  groupDone(groupId: string, result: unknown, at: At): void {
    if (this.#onEvent !== undefined) this.#tell(this.#onEvent, { kind: 'group-done', groupId, result, at })
  }

  #emit(type: string, event: WorkEvent): void {
    if (this.#onEvent !== undefined) this.#tell(this.#onEvent, event)
    const own = this.#registry.find(type)?.options.onEvent
    if (own !== undefined) this.#tell(own, event)
  }

  #tell(listener: (event: WorkEvent) => void, event: WorkEvent): void {
    try {
      listener(event)
    } catch {
      // An observer; the work must not suffer from it.
    }
  }
}

function ofItem(item: Envelope) {
  const { id, type, groupId, attempt } = item
  return { id, type, groupId, attempt }
}
