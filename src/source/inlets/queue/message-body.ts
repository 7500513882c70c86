import { OptionTypeError, optionsObject, stringOption } from '../../../core/options.js'
import { Headers, type HeadersInit } from '../../message/headers.js'

/** What surrounds a value on its way through a queue. */
export interface MessageBodyOptions {
  readonly headers?: HeadersInit
  /** The routing key: messages of one key keep their order. Default: none, or what the inlet's `keyOf` finds. */
  readonly key?: string
  /** A name of the message's own, the same when the producer sends it again: the header `message-id`, which `idempotency` reads. */
  readonly id?: string
}

/** A body as it was wrapped. */
export interface WrappedBody {
  readonly value: Uint8Array
  /** The value as text, where it was given as one. */
  readonly text: string | undefined
  readonly headers: Headers
  readonly key: string | undefined
}

/** How every wrapped body begins, so that any other body costs one comparison. */
const MARK = '{"millrace":"message/1",'

/**
 * Wraps a value with headers and a key, for a queue that a `QueueInlet` reads. A queue carries texts and nothing else; this
 * is the text that carries the rest. A body that was not made by it is delivered as it is, without headers.
 *
 * @example
 * ```ts
 * await backend.queue.push(messageBody('{"id":"o-1"}', { key: 'customer-7', id: 'o-1', headers: { 'content-type': 'application/json' } }))
 * ```
 */
export function messageBody(value: string | Uint8Array, options: MessageBodyOptions = {}): string {
  if (typeof value !== 'string' && !(value instanceof Uint8Array))
    throw new OptionTypeError('messageBody(value)', 'a string or a Uint8Array', value)
  const given = optionsObject('messageBody', options, ['headers', 'key', 'id'])
  const plain = new Headers(given.headers)
  const headers = given.id === undefined ? plain : plain.with('message-id', stringOption('messageBody.id', given.id))
  const parts = {
    ...(headers.size === 0 ? {} : { headers: headers.entries().map((header) => [header.key, header.value]) }),
    ...(given.key === undefined ? {} : { key: stringOption('messageBody.key', given.key) }),
    ...(typeof value === 'string' ? { value } : { base64: Buffer.from(value).toString('base64') }),
  }
  return MARK + JSON.stringify(parts).slice(1)
}

const utf8 = new TextEncoder()

/** Reads what `messageBody` made. Undefined: any other body. */
export function readMessageBody(body: string): WrappedBody | undefined {
  if (!body.startsWith(MARK)) return undefined
  try {
    const { headers = [], key, value, base64 } = JSON.parse(body) as Record<string, unknown>
    if (key !== undefined && typeof key !== 'string') return undefined
    // Refuses what is no list of pairs of texts.
    const read = new Headers(headers as HeadersInit)
    if (typeof value === 'string') return { value: utf8.encode(value), text: value, headers: read, key }
    if (typeof base64 !== 'string') return undefined
    return { value: new Uint8Array(Buffer.from(base64, 'base64')), text: undefined, headers: read, key }
  } catch {
    // Only looks like one: it is delivered as it is.
    return undefined
  }
}
