import { MillraceError } from '../../core/error.js'
import { describeValue } from '../../core/text/describe-value.js'

/** Refuses what is no text before anything has changed. `call` and `name` say which argument of which method it was. */
export function checkText(call: 'push' | 'deadLetter', name: 'body' | 'error', value: unknown): void {
  if (typeof value === 'string') return
  throw new MillraceError(
    'BAD_BODY',
    `${call}(${name}): ${name} must be a string, got ${describeValue(value)}. Encode it first.`,
  )
}
