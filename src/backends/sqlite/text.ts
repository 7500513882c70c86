import { MillraceError } from '../../core/error.js'
import { show } from '../../core/show.js'

/** The methods are in every Node that we run on; the compiler's library is older. */
interface WellFormed {
  isWellFormed(): boolean
  toWellFormed(): string
}

/** Half of a surrogate pair cannot be stored: two different texts would become the same one. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as WellFormed).isWellFormed()
}

/** For texts that are only ever read by people: an error must not be lost because of one character. */
export function toWellFormed(text: string): string {
  return isWellFormed(text) ? text : (text as unknown as WellFormed).toWellFormed()
}

/** Refuses what is no text, or none that can be stored, before anything has changed. */
export function checkText(where: string, value: unknown): asserts value is string {
  if (typeof value !== 'string')
    throw new MillraceError('BAD_BODY', `${where} must be a string, got ${show(value)}. Encode it first.`)
  if (!isWellFormed(value))
    throw new MillraceError(
      'BAD_TEXT',
      `${where} contains half of a surrogate pair, which UTF-8 cannot hold. Encode it first (JSON.stringify escapes it).`,
    )
}
