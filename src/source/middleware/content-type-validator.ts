import { OptionTypeError } from '../../core/options.js'
import { flag, readOptions, text } from '../../core/read-options.js'
import { mediaType } from '../message/media-type.js'
import type { Validator } from './schema.js'

/** Options of {@link contentTypeValidator}. */
export interface ContentTypeOptions {
  /** Which header. Default `content-type`. */
  readonly header?: string
  /** Media types that are accepted, without regard to case and parameters; none: any. */
  readonly allowed?: readonly string[]
  /** An empty payload is invalid. Default false. */
  readonly requireValue?: boolean
}

/**
 * A validator of the content type, and of whether there is a payload at all.
 *
 * @example
 * ```ts
 * schema(contentTypeValidator({ allowed: ['application/json'], requireValue: true }))
 * ```
 */
export function contentTypeValidator(options?: ContentTypeOptions): Validator {
  const { header, requireValue, allowed } = readOptions('contentTypeValidator', options, {
    header: text('content-type'),
    allowed: allowedTypes,
    requireValue: flag(false),
  })
  return (_ctx, message) => {
    if (requireValue && message.value.length === 0) return new Error('empty payload')
    const found = message.headers.get(header)
    if (found === undefined || found === '') return new Error(`header "${header}" is missing`)
    if (allowed.size === 0 || allowed.has(mediaType(found))) return undefined
    return new Error(`content type "${found}" is not one of ${[...allowed].join(', ')}`)
  }
}

function allowedTypes(path: string, given: unknown = []): ReadonlySet<string> {
  if (Array.isArray(given) && given.every((type) => typeof type === 'string' && mediaType(type) !== ''))
    return new Set(given.map(mediaType))
  throw new OptionTypeError(path, 'an array of media types', given)
}
