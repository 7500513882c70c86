import { MillraceError } from '../../core/error.js'
import { describeValue } from '../../core/text/describe-value.js'

/** What a counter is increased by; throws unless it is a number. */
export function finiteStep(key: string, by: number): number {
  if (Number.isFinite(by)) return by
  throw notANumber(key, describeValue(by))
}

/** The number that a key holds as text: 0 if it holds nothing; throws if it holds something else. */
export function counterValue(key: string, text: string | undefined): number {
  if (text === undefined) return 0
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw notANumber(key, describeValue(text))
  return value
}

export function notANumber(key: string, what: string, cause?: unknown): MillraceError {
  return new MillraceError(
    'NOT_A_NUMBER',
    `increment("${key}"): ${what} is not a number. Delete the key or use another one.`,
    { facts: { key }, ...(cause === undefined ? {} : { cause }) },
  )
}
