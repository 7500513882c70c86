import { isInstance, peekString } from '../text/safe-read.js'
import { isRetryAbort, WorkDelayError } from './control-errors.js'
import { DecodeError, InvalidForStateError, PoisonError, RetryableError, SchemaError } from './failure-errors.js'

/** What an error says of itself, when it says anything. */
export type Said = 'poison' | 'invalidForState' | 'retryable' | 'abort' | 'delay' | 'decode' | 'schema'

// An error may come from another copy of the package, or have crossed a process as plain data, so that its class is not
// ours; its code or name still shows it. Some names are those of other queues, so that handlers moved over from them keep
// their meaning.
const BY_CODE: ReadonlyMap<string, Said> = new Map([
  ['POISON', 'poison'],
  ['INVALID_FOR_STATE', 'invalidForState'],
  ['RETRYABLE', 'retryable'],
  ['WORK_DELAYED', 'delay'],
  ['DECODE_FAILED', 'decode'],
  ['SCHEMA_MISMATCH', 'schema'],
])
const BY_NAME: ReadonlyMap<string, Said> = new Map([
  ['PoisonError', 'poison'],
  ['NonRetryableError', 'poison'],
  ['NonRetriableError', 'poison'],
  ['UnrecoverableError', 'poison'],
  ['InvalidForStateError', 'invalidForState'],
  ['GuardRejection', 'invalidForState'],
  ['RetryableError', 'retryable'],
  ['RetryAfterError', 'retryable'],
  ['WorkDelayError', 'delay'],
  ['DecodeError', 'decode'],
  ['SchemaError', 'schema'],
])

/** What this one error says of itself, without its causes. Goes by class, code and name, never by message. Never throws. */
export function declaredClass(error: unknown): Said | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if (isRetryAbort(error)) return 'abort'
  if (isInstance(error, WorkDelayError)) return 'delay'
  if (isInstance(error, PoisonError)) return 'poison'
  if (isInstance(error, InvalidForStateError)) return 'invalidForState'
  if (isInstance(error, RetryableError)) return 'retryable'
  if (isInstance(error, DecodeError)) return 'decode'
  if (isInstance(error, SchemaError)) return 'schema'
  const code = peekString(error, 'code')
  const byCode = code === undefined ? undefined : BY_CODE.get(code)
  if (byCode !== undefined) return byCode
  const name = peekString(error, 'name')
  return name === undefined ? undefined : BY_NAME.get(name)
}
