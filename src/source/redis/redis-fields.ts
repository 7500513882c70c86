import { OptionTypeError, optionsObject, stringOption } from '../../core/options.js'
import { Headers, type HeadersInit } from '../message/headers.js'
import { KEY_FIELD, VALUE_FIELD } from './wire-names.js'

/** What surrounds a value on its way through a stream. */
export interface StreamFieldsOptions {
  readonly headers?: HeadersInit
  /** The routing key: messages of one key keep their order. */
  readonly key?: string
  /** A name of the message's own, the same when its producer sends it again: the header `message-id`. */
  readonly id?: string
}

/**
 * The fields of an entry, for `XADD` of any client, as a `RedisStreamInlet` reads them.
 *
 * @example
 * ```ts
 * await redis.xadd('orders', '*', ...streamFields('{"id":"o-1"}', { key: 'customer-7', id: 'o-1' }))
 * ```
 */
export function streamFields(value: string | Uint8Array, options: StreamFieldsOptions = {}): (string | Buffer)[] {
  if (typeof value !== 'string' && !(value instanceof Uint8Array))
    throw new OptionTypeError('streamFields(value)', 'a string or a Uint8Array', value)
  const given = optionsObject('streamFields', options, ['headers', 'key', 'id'])
  const headers = new Headers(given.headers).entries().flatMap(({ key, value: text }) => [key, text])
  return [
    ...[VALUE_FIELD, typeof value === 'string' ? value : Buffer.from(value)],
    ...(given.key === undefined ? [] : [KEY_FIELD, stringOption('streamFields.key', given.key)]),
    ...(given.id === undefined ? [] : ['message-id', stringOption('streamFields.id', given.id)]),
    ...headers,
  ]
}
