import { MillraceError } from '../../core/error.js'
import { describeValue } from '../../core/text/describe-value.js'
import { isWellFormed } from '../../core/text/well-formed.js'

/** Refuses what is no text, or none that can be stored, before anything has changed. */
export function checkText(where: string, value: unknown): asserts value is string {
  if (typeof value !== 'string')
    throw new MillraceError('BAD_BODY', `${where} must be a string, got ${describeValue(value)}. Encode it first.`)
  if (!isWellFormed(value))
    throw new MillraceError(
      'BAD_TEXT',
      `${where} contains half of a surrogate pair, which UTF-8 cannot hold. Encode it first (JSON.stringify escapes it).`,
    )
}
