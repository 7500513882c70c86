import { Fifo } from '../../../core/collections/fifo.js'
import { Heap } from '../../../core/collections/heap.js'
import { isResult, type Result } from '../../../core/stream/result.js'
import { InvalidResultError } from '../../../core/stream/stream-errors.js'
import { describeValue } from '../../../core/text/describe-value.js'
import type { Clock } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import { unreachable } from '../../../core/unreachable.js'
import { AlreadySettledError } from '../../errors.js'
import { LeaseLostError } from '../../loop/errors.js'
import { MemMessage, type MemOrigin, type MemRecord, type StreamSlot } from './mem-message.js'
import type { SettlementLog } from './settlement-log.js'

export interface MemStreamOptions {
  readonly clock: Clock
  readonly ledger: SettlementLog
  readonly leaseMs: Ms
  /** Naks and lapsed leases come back; otherwise they are only recorded, and a lease never ends. */
  readonly redeliver: boolean
}

/**
 * The queue behind a memory inlet, shared by its subscriptions: what waits, what is out under a lease, and what comes back
 * when. It sets a timer only while a consumer waits; otherwise it reads the time when it is asked.
 */
export class MemStream implements MemOrigin {
  readonly #o: MemStreamOptions
  readonly #log: MemRecord[] = []
  /** Never delivered, in the order of arrival. */
  #fresh = new Fifo<StreamSlot>()
  /** Released undelivered: each keeps its place. */
  #returned = new Heap<StreamSlot>(isBefore)
  /** To be delivered again, by due time. */
  #again = new Heap<StreamSlot>(isBefore)
  /** Out, the one whose lease ends first in front: all leases have the same length, and an extended one goes to the back. */
  readonly #out = new Set<MemMessage>()
  /** Partitions that are held back, and what was met of them. */
  readonly #aside = new Map<string, StreamSlot[]>()
  readonly #waiters = new Set<() => void>()
  #cancelTimer: (() => void) | undefined
  #orders = 0

  constructor(options: MemStreamOptions) {
    this.#o = options
  }

  get log(): readonly MemRecord[] {
    return this.#log
  }

  /** Everything that is not settled: waiting, coming back or out. */
  get unsettled(): number {
    let aside = 0
    for (const slots of this.#aside.values()) aside += slots.length
    return this.#fresh.size + this.#returned.size + this.#again.size + this.#out.size + aside
  }

  append(record: MemRecord): void {
    this.#log.push(record)
    this.#fresh.push(this.#slotFor(record))
  }

  /** The next message that is due; `isClosed`: without redeliveries. */
  take(isClosed: boolean): MemMessage | undefined {
    const now = this.#o.clock.monotonic()
    this.#lapse(now)
    for (;;) {
      const slot = this.#first(now, isClosed)
      if (slot === undefined) return undefined
      const aside = this.#aside.size === 0 ? undefined : this.#aside.get(slot.record.partitionKey)
      if (aside !== undefined) {
        aside.push(slot)
        continue
      }
      slot.deliveries += 1
      const message = new MemMessage(this, slot, now + this.#o.leaseMs)
      this.#out.add(message)
      if (this.#waiters.size > 0) this.#arm()
      return message
    }
  }

  /** Whether nothing will ever come of waiting on a closed subscription, redeliveries counted or not. */
  isExhausted(withRedeliveries: boolean): boolean {
    if (this.#fresh.size + this.#returned.size > 0) return false
    for (const slots of this.#aside.values()) {
      if (slots.some((slot) => withRedeliveries || !slot.isRedelivery)) return false
    }
    // What is out may still come back.
    return !withRedeliveries || this.#again.size + this.#out.size === 0
  }

  settle(message: MemMessage, result: Result): void {
    if (!isResult(result)) throw new InvalidResultError(describeValue(result))
    const { clock, ledger, redeliver } = this.#o
    const now = clock.monotonic()
    this.#lapse(now)
    if (message.state === 'lapsed') throw new LeaseLostError()
    const { slot } = message
    // A handler that settles by itself has done so before it returns manual().
    if (message.state === 'settled' && result.action !== 'manual') {
      throw new AlreadySettledError(message.subject, slot.record.id)
    }
    ledger.record({ id: slot.record.id, result, atMs: clock.now(), attempt: message.deliveryCount })
    switch (result.action) {
      case 'ack':
      case 'term':
        this.#end(message)
        break
      case 'nak':
        this.#end(message)
        if (redeliver) this.#comeBack(slot, now + result.requeueMs)
        break
      case 'inProgress':
        this.extend(message)
        break
      case 'manual':
        break
      default:
        unreachable(result)
    }
    this.wake()
  }

  /** False: the lease is gone. */
  extend(message: MemMessage): boolean {
    const now = this.#o.clock.monotonic()
    this.#lapse(now)
    if (message.state !== 'out') return false
    message.leasedUntil = now + this.#o.leaseMs
    this.#out.delete(message)
    this.#out.add(message)
    return true
  }

  /** Gives a message back to its place, as if it had not been delivered. */
  release(message: MemMessage): void {
    this.#lapse(this.#o.clock.monotonic())
    if (message.state === 'lapsed') throw new LeaseLostError()
    const { slot } = message
    if (message.state === 'settled') throw new AlreadySettledError(message.subject, slot.record.id)
    this.#end(message)
    slot.deliveries -= 1
    this.#file(slot)
    this.wake()
  }

  /** Starts over behind the first `skipped` records: what waits and what was to come back is forgotten. */
  seek(skipped: number): void {
    this.#fresh = new Fifo()
    this.#returned = new Heap(isBefore)
    this.#again = new Heap(isBefore)
    for (const slots of this.#aside.values()) slots.length = 0
    for (const record of this.#log.slice(skipped)) this.#fresh.push(this.#slotFor(record))
    this.wake()
  }

  /** Delivers nothing of a partition, until `letGo`. */
  holdBack(partition: string): void {
    if (!this.#aside.has(partition)) this.#aside.set(partition, [])
  }

  letGo(partition: string): void {
    const slots = this.#aside.get(partition)
    if (slots === undefined) return
    this.#aside.delete(partition)
    for (const slot of slots) this.#file(slot)
    this.wake()
  }

  /** Resolves when another look may find something; rejects on abort. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(wakeUp)
        signal.removeEventListener('abort', onAbort)
        if (this.#waiters.size === 0) this.#disarm()
      }
      const wakeUp = () => {
        leave()
        resolve()
      }
      const onAbort = () => {
        leave()
        reject(signal.reason)
      }
      this.#waiters.add(wakeUp)
      signal.addEventListener('abort', onAbort)
      this.#arm()
    })
  }

  wake(): void {
    for (const wakeUp of [...this.#waiters]) wakeUp()
  }

  #slotFor(record: MemRecord): StreamSlot {
    const dueAt = this.#o.clock.monotonic()
    return { record, deliveries: 0, dueAt, order: this.#orders++, isRedelivery: false }
  }

  #first(now: Ms, isClosed: boolean): StreamSlot | undefined {
    const fresh = this.#fresh.peek()
    const returned = this.#returned.peek()
    const again = isClosed ? undefined : this.#again.peek()
    let first = fresh
    if (returned !== undefined && (first === undefined || isBefore(returned, first))) first = returned
    if (again !== undefined && again.dueAt <= now && (first === undefined || isBefore(again, first))) first = again
    if (first === undefined) return undefined
    if (first === fresh) return this.#fresh.shift()
    return first === returned ? this.#returned.pop() : this.#again.pop()
  }

  #file(slot: StreamSlot): void {
    const to = slot.isRedelivery ? this.#again : this.#returned
    to.push(slot)
  }

  #comeBack(slot: StreamSlot, dueAt: Ms): void {
    slot.isRedelivery = true
    slot.dueAt = dueAt
    this.#file(slot)
  }

  #end(message: MemMessage): void {
    message.state = 'settled'
    this.#out.delete(message)
  }

  /** Takes back what was out for longer than its lease. */
  #lapse(now: Ms): void {
    if (!this.#o.redeliver) return
    for (const message of this.#out) {
      if (message.leasedUntil > now) return
      message.state = 'lapsed'
      this.#out.delete(message)
      this.#comeBack(message.slot, message.leasedUntil)
    }
  }

  // ── waiting ──

  #arm(): void {
    this.#disarm()
    const again = this.#again.peek()?.dueAt ?? Infinity
    const [oldest] = this.#o.redeliver ? this.#out : []
    const nextAt = Math.min(again, oldest?.leasedUntil ?? Infinity)
    if (nextAt === Infinity) return
    const { clock } = this.#o
    this.#cancelTimer = clock.after(Math.max(0, nextAt - clock.monotonic()), () => {
      this.#cancelTimer = undefined
      this.wake()
    })
  }

  #disarm(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }
}

/** By due time, then in the order in which they were filed first. */
function isBefore(a: StreamSlot, b: StreamSlot): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order)
}
