import { createHash } from 'node:crypto'
import { MillraceError } from '../../core/error.js'
import { numberOption, OptionTypeError } from '../../core/options.js'
import type { Ms } from '../../core/time.js'
import { isUnstorable } from './refusal.js'

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

/** A key of any length as one that fits into an index; no two meet. */
export function indexKey(key: string): string {
  return key.length <= LONGEST_KEY ? `=${key}` : `#${createHash('sha256').update(key).digest('hex')}`
}
