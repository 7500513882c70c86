import { classLabel, FAILURE_CLASSES, type FailureClass } from '../../../core/failure/failure.js'
import type { ResultOf } from '../../../core/stream/result.js'
import { errorMessage, errorName, MAX_ERROR_TEXT_BYTES, truncateUtf8 } from '../../../core/text/error-text.js'
import type { Context } from '../../message/context.js'
import { type DeadLetterRecord, deadLetteredMessageKey } from '../../middleware/dead-letter.js'
import type { BrokerMessage } from './broker-message.js'
import type { StreamLetter } from './stream-letters.js'

/** What a dead letter has beside its message: fields of an entry, or headers, in order. */
export type LetterWords = readonly (readonly [name: string, value: string])[]

/** How each of their names begins. The first four are those of Crucible. */
export const LETTER_MARK = 'crucible-dlq-'

const NAMES = Object.freeze({
  cursor: `${LETTER_MARK}original-id`,
  stream: `${LETTER_MARK}stream`,
  class: `${LETTER_MARK}class`,
  error: `${LETTER_MARK}error`,
  errorName: `${LETTER_MARK}error-name`,
  attempts: `${LETTER_MARK}attempts`,
  group: `${LETTER_MARK}group`,
  /** The hopper that gave it up. */
  source: `${LETTER_MARK}source`,
})

/** What a termination says of its message. */
function wordsOfTerm(message: BrokerMessage, result: ResultOf<'term'>, group: string): LetterWords {
  const { error } = result
  return words({ subject: message.cursor.stream, cursor: message.cursor }, group, {
    class: classLabel(result.class),
    error: error === undefined ? '' : errorMessage(error),
    errorName: error === undefined || typeof error === 'string' ? '' : errorName(error),
    attempts: message.deliveryCount,
  })
}

/** What `dlq` says of a message. */
export function wordsOfRecord(
  place: { readonly subject: string; readonly cursor: { toString(): string } },
  record: DeadLetterRecord,
  group: string,
): LetterWords {
  const { reason, lastError: error, errorName: name, attempts, source } = record
  return [...words(place, group, { class: reason, error, errorName: name, attempts }), [NAMES.source, source]]
}

/**
 * Keeps what `dlq` says with its message, if that is one of ours: it is written when the message is settled, in the same step.
 * Answers whether it is.
 */
export function keepWithMessage(ctx: Context, record: DeadLetterRecord, origin: object, group: string): boolean {
  const message = ctx.get(deadLetteredMessageKey) as Partial<BrokerMessage> | undefined
  if (message?.origin !== origin) return false
  const mine = message as BrokerMessage
  mine.letter = wordsOfRecord({ subject: mine.cursor.stream, cursor: mine.cursor }, record, group)
  return true
}

/** What is to be written when a message is terminated. Undefined: its dead letter is kept elsewhere. */
export function wordsToWrite(message: BrokerMessage, result: ResultOf<'term'>, group: string): LetterWords | undefined {
  if (message.letter !== undefined) return message.letter
  return result.deadLettered === true ? undefined : wordsOfTerm(message, result, group)
}

type ReadWords = Pick<StreamLetter, 'cursor' | 'subject' | 'class' | 'error' | 'errorName' | 'attempts'>

/** Reads what was written, by the names of its fields. What is missing reads as empty. */
export function readWords(get: (name: string) => string | undefined): ReadWords {
  const attempts = Number(get(NAMES.attempts) ?? Number.NaN)
  return {
    cursor: get(NAMES.cursor) ?? '',
    subject: get(NAMES.stream) ?? '',
    class: classIn(get(NAMES.class)),
    error: get(NAMES.error) ?? '',
    errorName: get(NAMES.errorName) ?? '',
    attempts: Number.isSafeInteger(attempts) ? attempts : undefined,
  }
}

function words(
  place: { readonly subject: string; readonly cursor: { toString(): string } },
  group: string,
  why: { readonly class: string; readonly error: string; readonly errorName: string; readonly attempts: number },
): LetterWords {
  return [
    [NAMES.cursor, place.cursor.toString()],
    [NAMES.stream, place.subject],
    [NAMES.class, why.class],
    [NAMES.error, truncateUtf8(why.error, MAX_ERROR_TEXT_BYTES)],
    [NAMES.errorName, why.errorName],
    [NAMES.attempts, String(why.attempts)],
    [NAMES.group, group],
  ]
}

function classIn(label: string | undefined): FailureClass {
  return FAILURE_CLASSES.find((known) => classLabel(known) === label) ?? 'unclassified'
}
