import { createHash } from 'node:crypto'
import { MillraceError } from '../../core/error.js'
import { numberOption, OptionTypeError } from '../../core/options.js'
import { isWellFormed } from '../../core/text/well-formed.js'
import type { Ms } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import { restOfEnvelope } from '../shared/envelope-columns.js'
import type { Refused, StorageLimits } from '../shared/refusal.js'
import { usualRest } from '../shared/usual-rest.js'

/** The fields of an envelope that have a column; the others are stored as one JSON text. */
const ENVELOPE_COLUMNS: ReadonlySet<string> = new Set([
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

const UNSTORABLE = /\0|\p{Surrogate}/gu

/** PostgreSQL's text has no U+0000 and no half of a surrogate pair. */
export function isUnstorable(text: string): boolean {
  // Three times as fast as a pattern; every text of every settlement comes here.
  return text.includes('\0') || !isWellFormed(text)
}

/** An error is recorded whatever it holds. */
export function storable(text: string): string {
  return isUnstorable(text) ? text.replaceAll(UNSTORABLE, '\ufffd') : text
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

const rests = new WeakMap<Envelope, string | null>()

/** What has no column, as JSON: as it was when it was last checked, which is at the beginning of its commit. */
export function restOf(item: Envelope): string | null {
  const usual = commonRest(item)
  if (usual !== undefined) return usual
  return rests.has(item) ? (rests.get(item) as string | null) : restOfEnvelope(item, ENVELOPE_COLUMNS)
}

/** Of most items: what is kept of it already. */
const commonRest = (item: Envelope): string | undefined => (item.waiter === undefined ? usualRest(item) : undefined)

/** In JSON that is written by `JSON.stringify`: an escape that `jsonb` refuses, and not one that is itself escaped. */
const UNSTORABLE_ESCAPE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

const hasUnstorableEscape = (json: string): boolean => json.includes('\\u') && UNSTORABLE_ESCAPE.test(json)

/**
 * A field without a column that cannot be kept. Those fields are one JSON text, in which such a character is an escape: it could be
 * stored, but no longer be read by the server, and then the redrive of that item would fail the batch that it is in.
 */
function unstorableField(item: Envelope): string | undefined {
  let rest: string | null | undefined = commonRest(item)
  if (rest === undefined) {
    rest = restOfEnvelope(item, ENVELOPE_COLUMNS)
    rests.set(item, rest)
  }
  if (rest === null || !hasUnstorableEscape(rest)) return undefined
  for (const name in item) {
    if (ENVELOPE_COLUMNS.has(name)) continue
    if (isUnstorable(name)) return storable(name)
    if (hasUnstorableEscape(JSON.stringify(item[name]) ?? '')) return name
  }
  return undefined
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
