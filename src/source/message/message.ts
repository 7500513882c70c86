import type { At } from '../../core/time/time.js'
import type { Headers } from './headers.js'

/**
 * A message as an inlet delivers it: read-only, and the same shape for every backend. A handler reads it and returns a
 * result; it never settles.
 */
export interface Message {
  /** The routing key; `null` when the producer set none. */
  readonly key: Uint8Array | null
  /** The raw payload; an empty array when there is none. */
  readonly value: Uint8Array
  readonly headers: Headers
  /** The topic, subject or stream it came from. */
  readonly subject: string
  /** The ordering domain; `''` on backends without partitions. */
  readonly partitionKey: string
  readonly cursor: Cursor
  /** Which delivery of this message it is, from 1. Set by adapters whose backend counts. */
  readonly deliveryCount?: number
  /** The broker's timestamp, epoch ms, where it is known. */
  readonly timestampMs?: At
  /** What the last nak kept with it (`ResultOf<'nak'>.note`), where the subscription can keep such a note. */
  readonly note?: string | undefined
  /** The vendor's own value behind the message, for those who hold its adapter's token; `undefined` for any other token. */
  as<T>(token: VendorToken<T>): T | undefined
}

/** A resumable position in the stream that issued it, and in no other. Its string form is stable: store that. */
export interface Cursor {
  toString(): string
}

declare const vendorType: unique symbol

/** The key to an adapter's own value behind a message. Two tokens are never equal, whatever their names. */
export interface VendorToken<T> {
  /** For people: what the token stands for. */
  readonly name: string
  /** Carries the type only; no token has it at run time. */
  readonly [vendorType]?: (value: T) => T
}

/**
 * Makes the token of an adapter.
 *
 * @example
 * ```ts
 * export const jetStreamMessage = vendorToken<JsMsg>('jetstream message')
 * message.as(jetStreamMessage)?.working()
 * ```
 */
export function vendorToken<T>(name: string): VendorToken<T> {
  return Object.freeze({ name })
}
