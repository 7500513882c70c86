import { aggregateMembers } from '../failure/error-chain.js'
import { isInstance, peek, peekString } from './safe-read.js'

/** Stored error text is cut to this. */
export const MAX_ERROR_TEXT_BYTES = 8 * 1024
/** As much of an error as a list loads of each item, in characters. */
export const LISTED_ERROR_CHARACTERS = 500

const CUT_MARK = '… [cut]'

/**
 * An error as text, for storing and showing: `<name>: <message>` for Errors (and what looks like one), `String(x)` for
 * the rest. Never throws, whatever was thrown; at most 8 KiB of UTF-8; without NUL, which some databases refuse.
 */
export function errorText(error: unknown): string {
  return truncateUtf8(wholeText(error), MAX_ERROR_TEXT_BYTES)
}

/**
 * The first line of an error text, at most `most` characters of it, and `…` where something was left out: what a list shows.
 * The caller may pass just the beginning of the text, if that is longer than `most`.
 */
export function listedError(text: string, most = LISTED_ERROR_CHARACTERS): string {
  const end = text.search(/[\r\n]/)
  const line = end < 0 ? text : text.slice(0, end)
  if (line.length > most) return `${wholeCharacters(line, most)}…`
  return end < 0 ? line : `${line}…`
}

/** At most `most` UTF-16 units, without half of a surrogate pair at the end. */
function wholeCharacters(text: string, most: number): string {
  return text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')
}

/** The name of an error as people know it; for what is no error, its type. Never throws. */
export function errorName(error: unknown): string {
  const name = peekString(error, 'name')
  if (name !== undefined && name !== '' && typeof error === 'object') return name.slice(0, 200)
  if (isInstance(error, Error)) return 'Error'
  return error === null ? 'null' : typeof error
}

/** The message of an error, or what it reads as when it has none. Never throws; not cut. */
export function errorMessage(error: unknown): string {
  const message = peekString(error, 'message') ?? stringOf(error)
  return message === '' ? messageOfMembers(error) : message
}

/** The same, with the messages of the errors in an AggregateError after its own. */
export function wholeMessage(error: unknown): string {
  const message = errorMessage(error)
  const members = messageOfMembers(error)
  return members === '' || message === members ? message : `${message} (${members})`
}

/** How many errors of an AggregateError are quoted, and how much of each. */
const QUOTED_MEMBERS = 3
const QUOTED_CHARACTERS = 200

/**
 * What the errors in an AggregateError say. Node throws one without a message when all addresses of a host refuse, as those of
 * `localhost` do, and that of `Promise.any` does not give the reasons either.
 */
function messageOfMembers(error: unknown): string {
  const members = aggregateMembers(error)?.members ?? []
  const quoted = members.slice(0, QUOTED_MEMBERS).map((one) => {
    const text = peekString(one, 'message') || stringOf(one)
    return text.length > QUOTED_CHARACTERS ? `${wholeCharacters(text, QUOTED_CHARACTERS)}…` : text
  })
  return [...new Set(quoted), ...(members.length > QUOTED_MEMBERS ? ['…'] : [])].join('; ')
}

/** At most `maxBytes` of UTF-8, cut between characters and marked as cut. NUL and lone surrogates become U+FFFD. */
export function truncateUtf8(text: string, maxBytes: number): string {
  // A UTF-16 unit is at least one byte, so what is beyond can never be kept: drop it before reading the rest.
  const head = storable(text.slice(0, maxBytes))
  if (text.length <= maxBytes && Buffer.byteLength(head) <= maxBytes) return head
  const mark = Buffer.byteLength(CUT_MARK) <= maxBytes ? CUT_MARK : ''
  const bytes = Buffer.from(head)
  let end = Math.min(bytes.length, maxBytes - Buffer.byteLength(mark))
  // Step back over continuation bytes (10xxxxxx) to the start of a character.
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end) + mark
}

function wholeText(error: unknown): string {
  if (typeof error === 'object' && peekString(error, 'message') !== undefined) {
    const message = wholeMessage(error)
    const name = peekString(error, 'name') ?? (isInstance(error, Error) ? 'Error' : '')
    // Cut before joining: the sum of the two is copied, and a message can be 50 MB.
    const short = message.slice(0, MAX_ERROR_TEXT_BYTES + 1)
    return name === '' ? short : `${name.slice(0, 200)}: ${short}`
  }
  return isInstance(error, Error) ? `${errorName(error)}: ` : stringOf(error)
}

function stringOf(value: unknown): string {
  try {
    // Calling toString ourselves would miss Symbol.toPrimitive; String handles symbols as well.
    return String(value)
  } catch {
    const tag = peek(value, Symbol.toStringTag)
    return `[unprintable ${typeof tag === 'string' ? tag.slice(0, 100) : typeof value}]`
  }
}

function storable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is exactly what it searches for.
  return text.replace(/\u0000|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD')
}
