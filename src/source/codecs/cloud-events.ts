import { MillraceError, type WithCause } from '../../core/error.js'
import { OptionTypeError, optionsObject } from '../../core/options.js'
import type { At } from '../../core/time/time.js'
import { Headers } from '../message/headers.js'
import { mediaType } from '../message/media-type.js'
import type { Codec } from './codec-registry.js'
import { jsonMembers, scalarText } from './json-members.js'
import { parseRfc3339 } from './rfc3339.js'

/** An event in the shape of CloudEvents, whichever way it was sent. */
export interface CloudEvent<T = Uint8Array> {
  readonly specversion: string
  readonly id: string
  readonly source: string
  readonly type: string
  readonly subject: string | undefined
  /** As it was written, RFC 3339. */
  readonly time: string | undefined
  readonly timeMs: At | undefined
  readonly datacontenttype: string | undefined
  readonly dataschema: string | undefined
  /** Every other attribute, sorted by name. */
  readonly extensions: Readonly<Record<string, string>>
  /** The extensions as headers to pass on: `ce-ext-<name>`, sorted by name. */
  readonly headers: Headers
  /** `undefined` for an event that carries none. */
  readonly data: T | undefined
}

/** Options of {@link cloudEventsCodec}. */
export interface CloudEventsOptions<T> {
  /** Reads the data; its headers have the `content-type` of the data. Default: the bytes as they are. */
  readonly data?: Codec<T>
}

/** A message that is no CloudEvent. */
export class BadCloudEventError extends MillraceError {
  constructor(what: string, options?: WithCause) {
    super('BAD_CLOUD_EVENT', `Not a CloudEvent: ${what}`, options)
  }
}

/**
 * Reads CloudEvents. In *structured* mode (a media type that starts with `application/cloudevents`, in JSON) the payload
 * is the whole event; in *binary* mode (everything else) the attributes are headers `ce-…` or `ce_…` and the payload is the
 * data. Since in binary mode the content type is that of the data, make it a hopper's only codec, or a registry's default.
 *
 * @example
 * ```ts
 * const hopper = new Hopper({ codec: cloudEventsCodec({ data: jsonCodec() }) })
 * ```
 */
export function cloudEventsCodec<T = Uint8Array>(options?: CloudEventsOptions<T>): Codec<CloudEvent<T>> {
  const given = optionsObject('cloudEventsCodec', options, ['data'])
  if (given.data !== undefined && typeof given.data?.decode !== 'function') {
    throw new OptionTypeError('cloudEventsCodec.data', 'a codec with decode(data, headers)', given.data)
  }
  // Without a codec T is what it is by default: the bytes.
  const decodeData = (data: Uint8Array, headers: Headers) =>
    given.data === undefined ? (data as T) : given.data.decode(data, headers)

  return {
    async decode(payload, headers) {
      const contentType = headers.get('content-type') ?? ''
      const { attributes, data } = mediaType(contentType).startsWith(STRUCTURED)
        ? structured(payload, mediaType(contentType))
        : binary(payload, headers, contentType)
      const event = eventOf(attributes)
      if (data === undefined || data.length === 0) return Object.freeze({ ...event, data: undefined })
      const type = event.datacontenttype
      const dataHeaders = type === undefined ? headers.without('content-type') : headers.with('content-type', type)
      return Object.freeze({ ...event, data: await decodeData(data, dataHeaders) })
    },
  }
}

const STRUCTURED = 'application/cloudevents'

interface Parts {
  /** Lower-case names; blank values are left out. */
  readonly attributes: ReadonlyMap<string, string>
  readonly data: Uint8Array | undefined
}

function binary(data: Uint8Array, headers: Headers, contentType: string): Parts {
  const attributes = new Map<string, string>()
  for (const { key, value } of headers) {
    const name = /^ce[-_](.+)$/i.exec(key)?.[1]?.toLowerCase()
    if (name !== undefined && value.trim() !== '' && !attributes.has(name)) attributes.set(name, value)
  }
  const dataType = headers.get('datacontenttype')?.trim() || contentType.trim()
  if (!attributes.has('datacontenttype') && dataType !== '') attributes.set('datacontenttype', dataType)
  return { attributes, data }
}

const utf8 = new TextEncoder()

function structured(payload: Uint8Array, media: string): Parts {
  if (media !== STRUCTURED && media !== `${STRUCTURED}+json`) {
    throw new BadCloudEventError(`"${media}" is not read here, only single events in JSON (${STRUCTURED}+json)`)
  }
  const members = jsonMembers(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  const attributes = new Map<string, string>()
  for (const [name, raw] of members) {
    if (name === 'data' || name === 'data_base64') continue
    if (/^[{[]/.test(raw)) throw new BadCloudEventError(`its attribute "${name}" is neither text, number nor boolean`)
    const value = scalarText(raw)
    if (value.trim() !== '') attributes.set(name.toLowerCase(), value)
  }
  return { attributes, data: dataOf(members, attributes.get('datacontenttype')) }
}

/** The bytes of the data: binary data is base64, data in JSON stands as it is, and other data is the text of a string. */
function dataOf(members: ReadonlyMap<string, string>, datacontenttype: string | undefined): Uint8Array | undefined {
  const base64 = scalarText(members.get('data_base64'))
  if (base64 !== '') return fromBase64(base64)
  const raw = members.get('data')
  if (raw === undefined || raw === 'null') return undefined
  return utf8.encode(raw.startsWith('"') && !isJson(datacontenttype) ? scalarText(raw) : raw)
}

function isJson(contentType: string | undefined): boolean {
  if (contentType === undefined) return true // Data without a type is JSON in this format.
  const type = mediaType(contentType)
  return type.endsWith('/json') || type.endsWith('+json')
}

function fromBase64(text: string): Uint8Array {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.replace(/=+$/, '').length % 4 === 1) {
    throw new BadCloudEventError('its "data_base64" is not base64')
  }
  return new Uint8Array(Buffer.from(text, 'base64'))
}

const REQUIRED = ['id', 'source', 'type', 'specversion'] as const
const OPTIONAL = ['subject', 'time', 'datacontenttype', 'dataschema'] as const
const KNOWN: ReadonlySet<string> = new Set([...REQUIRED, ...OPTIONAL])

function eventOf(attributes: ReadonlyMap<string, string>): Omit<CloudEvent<never>, 'data'> {
  const missing = REQUIRED.filter((name) => !attributes.has(name))
  if (missing.length > 0) throw new BadCloudEventError(`it has no ${missing.map((name) => `"${name}"`).join(', ')}`)
  const required = (name: (typeof REQUIRED)[number]) => attributes.get(name) ?? ''
  const time = attributes.get('time')
  const timeMs = time === undefined ? undefined : parseRfc3339(time)
  if (time !== undefined && timeMs === undefined) {
    throw new BadCloudEventError(`its "time" is not RFC 3339: ${JSON.stringify(time.slice(0, 40))}`)
  }
  const extensions = [...attributes].filter(([name]) => !KNOWN.has(name)).sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    specversion: required('specversion'),
    id: required('id'),
    source: required('source'),
    type: required('type'),
    subject: attributes.get('subject'),
    time,
    timeMs,
    datacontenttype: attributes.get('datacontenttype'),
    dataschema: attributes.get('dataschema'),
    extensions: Object.freeze(Object.fromEntries(extensions)),
    headers: new Headers(extensions.map(([name, value]) => [`ce-ext-${name}`, value] as const)),
  }
}
