import { MillraceError } from '../error.js'
import { numberOption, optionsObject } from '../options.js'
import { isInstance, peek, peekString } from '../text/safe-read.js'
import type { At, Ms } from '../time/time.js'

/**
 * Thrown inside `retry(fn)` or a handler: stop now, whatever attempts are left. What happened is the `cause`; it is what
 * the caller of `retry` gets, and what is recorded of a work item.
 * @example
 * ```ts
 * if (response.status === 402) throw new RetryAbort(new Error('the card was declined'))
 * ```
 */
export class RetryAbort extends MillraceError {
  constructor(cause?: unknown, message = 'retry aborted') {
    super('RETRY_ABORT', message, cause === undefined ? {} : { cause })
    // Spelled out, because a minifier renames classes and this name is an agreement between packages.
    this.name = 'RetryAbort'
  }
}

/** When deferred work runs again: at an instant (which wins) or after a while. Nothing given means immediately. */
export interface WorkDelaySpec {
  /** Epoch ms. */
  readonly runAt?: At | undefined
  /** Milliseconds from now. */
  readonly delay?: Ms | undefined
}

/**
 * Thrown by a handler: not now. The item runs again at `when` with the *same* attempt, so waiting for something costs no
 * retries; only its deadline bounds it.
 * @example
 * ```ts
 * if (!(await reportIsReady(id))) throw new WorkDelayError({ delay: 60_000 })
 * ```
 */
export class WorkDelayError extends MillraceError {
  readonly when: WorkDelaySpec
  constructor(when: WorkDelaySpec, message = 'work deferred') {
    super('WORK_DELAYED', message)
    this.name = 'WorkDelayError'
    const given = optionsObject('WorkDelayError', when, ['runAt', 'delay'])
    // A NaN here would defer again and again without a wait: no attempt is spent, so nothing would ever stop it.
    numberOption('WorkDelayError.runAt', given.runAt, { default: 0 })
    numberOption('WorkDelayError.delay', given.delay, { default: 0 })
    this.when = Object.freeze({ ...given })
  }
}

/** Whether it is a `RetryAbort`, also one of another copy of the package. */
export function isRetryAbort(error: unknown): boolean {
  return (
    isInstance(error, RetryAbort) || peek(error, 'code') === 'RETRY_ABORT' || peekString(error, 'name') === 'RetryAbort'
  )
}

/** What a `RetryAbort` stands for: its cause, or itself when it has none. Every other error is returned as it is. */
export function abortReason(error: unknown): unknown {
  if (!isRetryAbort(error)) return error
  const cause = peek(error, 'cause')
  return cause === undefined ? error : cause
}
