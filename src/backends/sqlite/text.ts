import { MillraceError } from '../../core/error.js'
import { show } from '../../core/show.js'
import { isWellFormed } from '../../core/well-formed.js'

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
