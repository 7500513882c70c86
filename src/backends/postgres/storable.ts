import { createHash } from 'node:crypto'
import { MillraceError } from '../../core/error.js'
import { numberOption, OptionTypeError } from '../../core/options.js'
import type { Ms } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import type { Refused, StorageLimits } from '../shared/refusal.js'

/** The fields of an envelope that have a column; the others are stored as one JSON text. */
export const ENVELOPE_COLUMNS: ReadonlySet<string> = new Set([
  'id',
  'type',
  'groupId',
  'input',
  'queueAt',
  'startAt',
  'attempt',
  'priority',
])

/** An entry of an index holds some 2,700 bytes, and some indexes hold two names. */
const MAX_NAME_BYTES = 1_000

const SUSPECT = /[\0\ud800-\udfff]/
const UNSTORABLE = /\0|\p{Surrogate}/gu

/** PostgreSQL's text has no U+0000 and no half of a surrogate pair. */
export function isUnstorable(text: string): boolean {
  return SUSPECT.test(text) && text.search(UNSTORABLE) >= 0
}

/** An error is recorded whatever it holds. */
export function storable(text: string): string {
  return SUSPECT.test(text) ? text.replaceAll(UNSTORABLE, '\ufffd') : text
}

/** What PostgreSQL keeps: any text that it can hold, and names that fit into an index. */
export const keepsInPostgres: StorageLimits = {
  name(what, name) {
    if (isUnstorable(name)) return unstorable(what)
    if (name.length * 3 <= MAX_NAME_BYTES) return undefined
    const bytes = Buffer.byteLength(name)
    if (bytes <= MAX_NAME_BYTES) return undefined
    const message = `The name of the ${what} takes ${bytes} bytes; at most ${MAX_NAME_BYTES} can be looked up. Shorten it.`
    return { kind: 'refused', code: 'BAD_NAME', message, limit: MAX_NAME_BYTES }
  },
  text: (what, of, text) => (isUnstorable(text) ? unstorable(`${what} of ${of}`) : undefined),
  item(item) {
    if (isUnstorable(item.input)) return unstorable(`input of ${item.id}`)
    const field = unstorableField(item)
    return field === undefined ? undefined : unstorable(`"${field}" of ${item.id}`)
  },
}

function unstorable(what: string): Refused {
  const message = `The ${what} holds U+0000 or half of a surrogate pair, which PostgreSQL cannot store. Encode it (base64, JSON).`
  return { kind: 'refused', code: 'BAD_TEXT', message }
}

/** In JSON that is written by `JSON.stringify`: an escape that `jsonb` refuses, and not one that is itself escaped. */
const UNSTORABLE_ESCAPE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

/**
 * A field without a column that cannot be kept. Those fields are one JSON text, in which such a character is an escape: it could be
 * stored, but no longer be read by the server, and then the redrive of that item would fail the batch that it is in.
 */
function unstorableField(item: Envelope): string | undefined {
  for (const name in item) {
    if (ENVELOPE_COLUMNS.has(name)) continue
    const value = item[name]
    if (isUnstorable(name)) return storable(name)
    if (typeof value === 'string' ? isUnstorable(value) : isUnstorableWithin(value)) return name
  }
  return undefined
}

function isUnstorableWithin(value: unknown): boolean {
  return typeof value === 'object' && value !== null && UNSTORABLE_ESCAPE.test(JSON.stringify(value))
}

/** A text that a port was given: a string that PostgreSQL can hold. */
export function checkText(method: string, what: string, text: unknown, maxBytes: number): string {
  if (typeof text !== 'string') throw new OptionTypeError(`${method}(${what})`, 'a string', text)
  if (isUnstorable(text)) {
    throw new MillraceError(
      'BAD_TEXT',
      `${method}(${what}): it holds U+0000 or half of a surrogate pair, which PostgreSQL cannot store. Encode it (base64, JSON).`,
    )
  }
  const bytes = text.length * 3 <= maxBytes ? 0 : Buffer.byteLength(text)
  if (bytes > maxBytes) {
    throw new MillraceError(
      'TOO_LARGE',
      `${method}(${what}) takes ${bytes} bytes; the limit is ${maxBytes}. Store it elsewhere and give a reference to it, or raise maxItemBytes.`,
      { facts: { bytes, limit: maxBytes } },
    )
  }
  return text
}

/** A duration that a caller of a port gave: a negative one counts as none, and what is no finite number is refused by name. */
export function givenDuration(path: string, ms: Ms | undefined): Ms {
  return Math.ceil(Math.max(0, numberOption(path, ms, { default: 0 })))
}

/** Longer keys do not fit into an index, and stand there by their hash. */
const LONGEST_KEY = 300

/** A key of any length as one that fits into an index; no two collide. */
export function indexKey(key: string): string {
  return key.length <= LONGEST_KEY ? `=${key}` : `#${createHash('sha256').update(key).digest('hex')}`
}

/** Longer than any wait, and still a whole number that both sides can count with. */
const FOREVER: Ms = 4_000_000_000_000_000

/** A duration as the server counts it: whole, and not negative. */
export function wholeMs(ms: Ms): Ms {
  return ms > 0 ? Math.min(FOREVER, Math.ceil(ms)) : 0
}
