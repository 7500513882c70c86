import { DecodeError, PoisonError } from '../../core/failure/failure-errors.js'
import { OptionTypeError } from '../../core/options.js'
import { NoCodecError } from '../../core/stream/stream-errors.js'
import type { MaybePromise } from '../../core/time/time.js'
import type { Headers } from '../message/headers.js'
import { mediaType } from '../message/media-type.js'
import type { Message } from '../message/message.js'

/** Turns a payload into a value. A throw means that the payload is poison. */
export interface Codec<T = unknown> {
  decode(data: Uint8Array, headers: Headers): MaybePromise<T>
}

/**
 * Codecs by content type. It belongs to the caller that made it: there is no global one.
 *
 * @example
 * ```ts
 * const registry = new CodecRegistry().register('application/json', jsonCodec())
 * ```
 */
export class CodecRegistry {
  readonly #codecs = new Map<string, Codec>()
  #fallback: Codec | undefined

  /** Replaces what was registered before. Case and parameters of the type do not matter. */
  register(contentType: string, codec: Codec): this {
    checkCodec('register(contentType, codec)', codec)
    const type = typeof contentType === 'string' ? mediaType(contentType) : ''
    if (type === '') {
      throw new OptionTypeError('register(contentType)', 'a media type such as application/json', contentType)
    }
    this.#codecs.set(type, codec)
    return this
  }

  /** For messages whose content type is absent or unknown. */
  setDefault(codec: Codec): this {
    checkCodec('setDefault(codec)', codec)
    this.#fallback = codec
    return this
  }

  /** Every failure is a `DecodeError`, and hence poison. */
  async decode(message: Message): Promise<unknown> {
    const found = message.headers.get('content-type') ?? ''
    const codec = this.#for(mediaType(found))
    if (codec === undefined) throw new DecodeError(found, message.subject, new NoCodecError(found))
    try {
      return await codec.decode(message.value, message.headers)
    } catch (error) {
      throw new DecodeError(found, message.subject, error)
    }
  }

  #for(type: string): Codec | undefined {
    const exact = this.#codecs.get(type)
    if (exact !== undefined) return exact
    // RFC 6839: application/vnd.acme+json is JSON underneath.
    if (type.endsWith('+json')) return this.#codecs.get('application/json') ?? this.#fallback
    return this.#fallback
  }
}

/**
 * JSON in strict UTF-8: invalid bytes are poison, not replacement characters. With `parse` the value is also given a shape;
 * what it throws makes the payload poison.
 *
 * @example
 * ```ts
 * const orders = jsonCodec((value) => Order.parse(value))
 * ```
 */
export function jsonCodec<T = unknown>(parse: (value: unknown) => T = (value) => value as T): Codec<T> {
  const text = new TextDecoder('utf-8', { fatal: true })
  return { decode: (data) => parse(JSON.parse(text.decode(data))) }
}

/** Decodes, and insists on a shape: a value that fails the guard is poison. */
export async function decodeTyped<T>(
  registry: CodecRegistry,
  message: Message,
  guard: (value: unknown) => value is T,
): Promise<T> {
  const value = await registry.decode(message)
  let cause: unknown
  try {
    if (guard(value)) return value
  } catch (error) {
    // A guard that stumbles over the value has not found it to be what it should be.
    cause = error
  }
  throw new DecodeError(
    message.headers.get('content-type') ?? '',
    message.subject,
    new PoisonError('The decoded value does not have the expected shape.', cause === undefined ? {} : { cause }),
  )
}

function checkCodec(path: string, codec: Codec): void {
  if (typeof codec?.decode !== 'function') {
    throw new OptionTypeError(path, 'called with a codec that has decode(data, headers)', codec)
  }
}
