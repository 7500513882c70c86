import { Headers, type HeadersInit } from '../../src/source/message/headers.js'
import type { Message, VendorToken } from '../../src/source/message/message.js'

/** What a test says of a message; the rest is plain. */
export interface MessageSpec {
  readonly key?: string | Uint8Array
  readonly value?: string | Uint8Array
  readonly headers?: HeadersInit
  readonly subject?: string
  readonly partitionKey?: string
  readonly cursor?: string
}

/** A message as an adapter would deliver it. */
export function messageOf(spec: MessageSpec = {}): Message {
  return {
    key: spec.key === undefined ? null : bytes(spec.key),
    value: bytes(spec.value ?? ''),
    headers: new Headers(spec.headers),
    subject: spec.subject ?? 'orders',
    partitionKey: spec.partitionKey ?? '',
    cursor: { toString: () => spec.cursor ?? '1' },
    as: <T>(_token: VendorToken<T>) => undefined,
  }
}

export function bytes(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? new TextEncoder().encode(text) : text
}

export function text(data: Uint8Array | null): string | null {
  return data === null ? null : new TextDecoder().decode(data)
}
