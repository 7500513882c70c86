import { OptionTypeError } from '../../core/options.js'
import { isWellFormed } from '../../core/text/well-formed.js'

/** Longer names are a mistake, and would be in every key. */
const MAX_NAME = 1_024

/** A prefix or the name of a queue: any text that can be written, U+0000, quotes, braces and newlines included. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === 'string' && name !== '' && name.length <= MAX_NAME && isWellFormed(name)) return name
  throw new OptionTypeError(where, `a text of 1 to ${MAX_NAME} characters without half of a surrogate pair`, name)
}

/**
 * What every key of a system begins with: the prefix in braces, so that a cluster keeps all of them in one slot. A cluster reads
 * the tag up to the first closing brace, so braces in the prefix are spelt otherwise.
 */
export function tagOf(prefix: string): string {
  return `{${prefix.replace(/[%{}]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)}}`
}

/** A queue and a type, as the server spells both in one name: `<bytes of the queue>:<queue><type>`. */
export function queueTypeFrom(text: string): { readonly queue: string; readonly type: string } {
  const colon = text.indexOf(':')
  // The length is the server's, in bytes.
  const rest = Buffer.from(text.slice(colon + 1))
  const size = Number(text.slice(0, colon))
  return { queue: rest.subarray(0, size).toString(), type: rest.subarray(size).toString() }
}
