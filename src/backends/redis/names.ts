import { OptionTypeError } from '../../core/options.js'

/** Longer names are a mistake, and would be in every key. */
const MAX_NAME = 1_024

/** Half of a surrogate pair cannot be written in UTF-8: two such names would become one. */
const HALF_A_PAIR = /\p{Surrogate}/u

export const isText = (text: string): boolean => !HALF_A_PAIR.test(text)

/** Replaces what cannot be written: for texts whose every letter is not sacred. */
export const asText = (text: string): string => (isText(text) ? text : text.replace(/\p{Surrogate}/gu, '\ufffd'))

/** A prefix or the name of a queue: any text that can be written, U+0000, quotes, braces and newlines included. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === 'string' && name !== '' && name.length <= MAX_NAME && isText(name)) return name
  throw new OptionTypeError(where, `a text of 1 to ${MAX_NAME} characters without half of a surrogate pair`, name)
}

/**
 * What every key of a system begins with: the prefix in braces, so that a cluster keeps all of them in one slot. A cluster reads
 * the tag up to the first closing brace, so braces in the prefix are spelt otherwise.
 */
export function tagOf(prefix: string): string {
  return `{${prefix.replace(/[%{}]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)}}`
}
