import { MillraceError, type WithCause } from '../error.js'
import { OptionRangeError } from '../options.js'
import { errorText, truncateUtf8 } from '../text/error-text.js'
import type { At, Ms } from '../time/time.js'

/**
 * It can never succeed: malformed, forbidden, impossible. Thrown by a handler, the item is dead-lettered immediately, without a retry.
 * Give the reason as the message, and what you caught as `cause`.
 * @example
 * ```ts
 * if (order.total < 0) throw new PoisonError(`order ${order.id} has a negative total`)
 * ```
 */
export class PoisonError extends MillraceError {
  constructor(message = 'It can never succeed.', options: WithCause = {}) {
    super('POISON', message, options)
  }
}

/** `PoisonError` under the name that people search for. */
export class NonRetryableError extends PoisonError {}

/** It may succeed later. Says so explicitly where the rules would decide otherwise (an HTTP 400 that means "busy"). */
export class RetryableError extends MillraceError {
  constructor(message = 'It may succeed later.', options: WithCause = {}) {
    super('RETRYABLE', message, options)
  }
}

/**
 * It may succeed later, and not before then. The wait is a floor under the backoff, not a replacement for it, and the
 * attempt counts; to run again later *without* spending an attempt throw a `WorkDelayError`.
 * @example
 * ```ts
 * throw new RetryAfterError(30_000, 'the bank is closed for half a minute')
 * throw new RetryAfterError(new Date('2030-01-01T06:00:00Z'))
 * ```
 */
export class RetryAfterError extends RetryableError {
  /** How long to wait, when a duration was given. */
  readonly afterMs: Ms | undefined
  /** Until when to wait, when a Date was given. */
  readonly notBeforeAt: At | undefined
  constructor(after: Ms | Date, message = 'It asked to be tried again later.', options: WithCause = {}) {
    super(message, options)
    const ms = after instanceof Date ? after.getTime() : after
    if (typeof ms !== 'number' || !Number.isFinite(ms)) {
      throw new OptionRangeError('RetryAfterError(after)', 'a finite number of milliseconds or a valid Date', after)
    }
    this.afterMs = after instanceof Date ? undefined : Math.max(0, ms)
    this.notBeforeAt = after instanceof Date ? ms : undefined
  }
}

/** Well formed, but wrong for the state it met: a cancel after delivery. Dead-lettered immediately, with a class that differs from poison. */
export class InvalidForStateError extends MillraceError {
  constructor(message = 'It does not fit the state it met.', options: WithCause = {}) {
    super('INVALID_FOR_STATE', message, options)
  }
}

/** A state machine refused an event: an illegal transition, or a guard that said no. */
export class GuardRejection extends InvalidForStateError {
  readonly event: string
  readonly state: string
  constructor(event: string, state: string, cause?: unknown) {
    super(`Event "${event}" was rejected in state "${state}"${because(cause)}`, causedBy(cause))
    this.event = event
    this.state = state
  }
}

/** A payload that its codec could not read. */
export class DecodeError extends MillraceError {
  readonly contentType: string
  readonly subject: string
  constructor(contentType: string, subject: string, cause?: unknown) {
    const type = contentType === '' ? '' : ` with content-type ${contentType}`
    super('DECODE_FAILED', `Cannot decode a message of subject "${subject}"${type}${because(cause)}`, {
      ...causedBy(cause),
      facts: { contentType, subject },
    })
    this.contentType = contentType
    this.subject = subject
  }
}

/** A payload that was read, and is not what its schema says. */
export class SchemaError extends MillraceError {
  readonly subject: string
  constructor(subject: string, cause?: unknown) {
    super('SCHEMA_MISMATCH', `A message of subject "${subject}" does not match its schema${because(cause)}`, {
      ...causedBy(cause),
      facts: { subject },
    })
    this.subject = subject
  }
}

function causedBy(cause: unknown): WithCause {
  return cause === undefined ? {} : { cause }
}

/** The cause's own words, in short: dead letters keep only text, and "cannot decode" says too little. */
function because(cause: unknown): string {
  return cause === undefined ? '.' : `: ${truncateUtf8(errorText(cause), 500)}`
}
