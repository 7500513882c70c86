import { MillraceError } from '../../core/error.js'
import { errorFrom } from '../../core/failure/error-detail.js'
import type { FailureClass } from '../../core/failure/failure.js'
import type { Attempt, DeadEnding } from '../../ports/item.js'

/** What is known of an item that is dead. */
export interface DeadItem {
  readonly id: string
  readonly type: string
  /** As it was stored: name and message of what its handler threw last, or why it never ran. */
  readonly error: string
  readonly ending?: DeadEnding | undefined
  readonly class?: FailureClass | undefined
}

/**
 * The item that a caller waited for is dead. Its `cause` is an error like the one that its handler threw last, with name,
 * message, code, stack and causes, whichever process it was thrown in; there is none where no handler failed, and where the
 * backend keeps no attempts (plain ports).
 */
export class WorkFailedError extends MillraceError {
  readonly itemId: string
  readonly type: string
  readonly ending: DeadEnding | undefined
  readonly class: FailureClass | undefined

  constructor({ id, type, error, ending, class: failureClass }: DeadItem, last: Attempt | undefined) {
    const detail = last?.detail
    // A handler that lets the error of its child through fails with it: however deep that goes, the name stands once.
    super('WORK_FAILED', error.replace(/^(?:WorkFailedError: )+/, ''), {
      facts: { id, type, ending },
      ...(detail === undefined ? {} : { cause: errorFrom(detail) }),
    })
    this.itemId = id
    this.type = type
    this.ending = ending
    this.class = failureClass ?? last?.class
  }
}
