import { isBranded } from '../../core/brand.js'
import type { Result } from '../../core/stream/result.js'
import type { Headers } from './headers.js'
import type { Cursor, Message, VendorToken } from './message.js'

/** What the codec made of a message. `ok: false` where the hopper has no codec, or the payload could not be decoded. */
export type Decoded<T = unknown> = { readonly ok: true; readonly value: T } | { readonly ok: false }

const NOT_DECODED: Decoded<never> = Object.freeze({ ok: false })

/**
 * The decoded payload of a message that a hopper with a codec delivered.
 *
 * @example
 * ```ts
 * const body = decoded<Order>(message)
 * const result = body.ok ? ack() : term(new Error('no codec'))
 * ```
 */
export function decoded<T = unknown>(message: Message): Decoded<T> {
  return isPrepared(message) ? (message.decoded as Decoded<T>) : NOT_DECODED
}

/** The result that replaces the handler's: the message was refused before its turn. */
export function overrideOf(message: Message): Result | undefined {
  return isPrepared(message) ? message.override : undefined
}

const PREPARED = Symbol.for('millrace.prepared-message')

/** By its brand: a middleware may come from another copy of the package than the hopper. */
export function isPrepared(message: Message): message is PreparedMessage {
  return isBranded(message, PREPARED)
}

/** The adapter's message with what the engine found out about it: settle with `original`, never with this. */
export class PreparedMessage implements Message {
  readonly original: Message
  readonly decoded: Decoded
  readonly override: Result | undefined
  readonly deliveryCount?: number
  readonly timestampMs?: number

  constructor(original: Message, found: { readonly decoded?: Decoded; readonly override?: Result }) {
    this.original = original
    this.decoded = found.decoded ?? NOT_DECODED
    this.override = found.override
    if (original.deliveryCount !== undefined) this.deliveryCount = original.deliveryCount
    if (original.timestampMs !== undefined) this.timestampMs = original.timestampMs
  }

  get [PREPARED](): true {
    return true
  }
  get key(): Uint8Array | null {
    return this.original.key
  }
  get value(): Uint8Array {
    return this.original.value
  }
  get headers(): Headers {
    return this.original.headers
  }
  get subject(): string {
    return this.original.subject
  }
  get partitionKey(): string {
    return this.original.partitionKey
  }
  get cursor(): Cursor {
    return this.original.cursor
  }
  get note(): string | undefined {
    return this.original.note
  }
  as<T>(token: VendorToken<T>): T | undefined {
    return this.original.as(token)
  }
}
