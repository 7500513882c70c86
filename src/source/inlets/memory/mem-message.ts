import type { Result } from '../../../core/stream/result.js'
import type { At, Ms } from '../../../core/time/time.js'
import { Headers, type HeadersInit } from '../../message/headers.js'
import { type Cursor, type Message, type VendorToken, vendorToken } from '../../message/message.js'

/** A message to be queued in a {@link MemInlet}. Text becomes UTF-8. */
export interface MemMessageSpec {
  readonly key?: string | Uint8Array | null
  readonly value?: string | Uint8Array
  readonly headers?: HeadersInit
  /** Default `'memsource'`. */
  readonly subject?: string
  /** Default: the key as text. */
  readonly partitionKey?: string
}

/** What an inlet keeps of a message, whatever becomes of its deliveries. */
export interface MemRecord {
  readonly id: string
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers
  readonly subject: string
  readonly partitionKey: string
  readonly timestampMs: At
}

const utf8 = new TextEncoder()
const text = new TextDecoder()
const EMPTY = new Uint8Array()

export function recordOf(spec: MemMessageSpec, id: string, now: At): MemRecord {
  const key = spec.key === undefined || spec.key === null ? null : bytesOf(spec.key)
  return Object.freeze({
    id,
    key,
    value: spec.value === undefined ? EMPTY : bytesOf(spec.value),
    headers: spec.headers instanceof Headers ? spec.headers : new Headers(spec.headers),
    subject: spec.subject ?? 'memsource',
    partitionKey: spec.partitionKey || (key === null ? '' : text.decode(key)),
    timestampMs: now,
  })
}

/** A copy, so that a buffer which its owner uses again does not change what was queued. */
function bytesOf(given: string | Uint8Array): Uint8Array {
  return typeof given === 'string' ? utf8.encode(given) : new Uint8Array(given)
}

/** A record on its way through the queue: how often it has been delivered, and when it is due. */
export interface StreamSlot {
  readonly record: MemRecord
  /** Deliveries that count, the present one included. */
  deliveries: number
  /** Monotonic time from which it may be delivered. */
  dueAt: Ms
  /** Which of two that are due at the same time comes first. */
  readonly order: number
  /** It has been delivered, and failed or lapsed. */
  isRedelivery: boolean
}

/** A delivery as its inlet sees it, for handlers that settle by themselves and return `manual()`. */
export interface MemDelivery {
  readonly id: string
  settle(result: Result): Promise<void>
}

/** Gives the delivery behind a message of a {@link MemInlet}. */
export const memDelivery: VendorToken<MemDelivery> = vendorToken<MemDelivery>('mem delivery')

/** What a delivery needs of the queue it came from. */
export interface MemOrigin {
  settle(message: MemMessage, result: Result): void
}

/** One delivery of a record. */
export class MemMessage implements Message {
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers
  readonly subject: string
  readonly partitionKey: string
  readonly cursor: MemCursor
  readonly deliveryCount: number
  readonly timestampMs: At
  /** @internal */
  readonly origin: MemOrigin
  /** @internal */
  readonly slot: StreamSlot
  /** @internal */
  state: 'out' | 'settled' | 'lapsed' = 'out'
  /** @internal Monotonic time at which the lease ends. */
  leasedUntil: Ms

  constructor(origin: MemOrigin, slot: StreamSlot, leasedUntil: Ms) {
    const { record } = slot
    this.key = record.key
    this.value = record.value
    this.headers = record.headers
    this.subject = record.subject
    this.partitionKey = record.partitionKey
    this.cursor = new MemCursor(origin, record.id)
    this.deliveryCount = slot.deliveries
    this.timestampMs = record.timestampMs
    this.origin = origin
    this.slot = slot
    this.leasedUntil = leasedUntil
  }

  as<T>(token: VendorToken<T>): T | undefined {
    if ((token as VendorToken<unknown>) !== memDelivery) return undefined
    const delivery: MemDelivery = {
      id: this.slot.record.id,
      settle: async (result) => this.origin.settle(this, result),
    }
    return delivery as T // The token is ours, so T is MemDelivery.
  }
}

/** The id of a message, which knows the inlet it belongs to. */
export class MemCursor implements Cursor {
  readonly #origin: object
  readonly #id: string

  constructor(origin: object, id: string) {
    this.#origin = origin
    this.#id = id
  }

  isOf(origin: object): boolean {
    return this.#origin === origin
  }

  toString(): string {
    return this.#id
  }
}
