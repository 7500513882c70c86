import type { FailureClass } from '../failure/failure.js'
import { OptionRangeError } from '../options.js'
import { isObject } from '../text/safe-read.js'
import type { Ms } from '../time/time.js'

/**
 * What the engine does with a message: *ack* commits it; *nak* has it delivered again, perhaps after a delay; *term*
 * never again; *inProgress* extends the lease without settling; *manual*: the handler has settled it itself.
 */
export type Action = 'ack' | 'nak' | 'term' | 'inProgress' | 'manual'

/** What a handler reports. Only these combinations of action and class exist, so a poison message cannot be redelivered. */
export type Result =
  | {
      readonly action: 'ack'
      readonly class: 'unclassified' | 'drop'
      readonly requeueMs: 0
      readonly error?: undefined
    }
  | {
      readonly action: 'nak'
      readonly class: 'retryable' | 'unclassified'
      readonly requeueMs: Ms
      readonly error?: unknown
      /** What an adapter that redelivers by publishing again stamps on the copy. */
      readonly nextAttempt?: number
      /** Retry passes it through untouched: it must never be turned into a term. */
      readonly noEscalate?: true
      /** Kept with the message for its next delivery, where the subscription can. */
      readonly note?: string
    }
  | {
      readonly action: 'term'
      readonly class: 'poison' | 'invalidForState' | 'retryable'
      readonly requeueMs: 0
      readonly error?: unknown
      /** A dead letter exists already: an adapter with its own target must not write a second one. */
      readonly deadLettered?: boolean
    }
  | {
      readonly action: 'inProgress' | 'manual'
      readonly class: 'unclassified'
      readonly requeueMs: 0
      readonly error?: undefined
    }

/** One member of `Result`, by its action. */
export type ResultOf<A extends Action> = Extract<Result, { readonly action: A }>

// They carry no data, so one of each is enough.
const ACK: ResultOf<'ack'> = Object.freeze({ action: 'ack', class: 'unclassified', requeueMs: 0 })
const SKIP: ResultOf<'ack'> = Object.freeze({ action: 'ack', class: 'drop', requeueMs: 0 })
const IN_PROGRESS: Result = Object.freeze({ action: 'inProgress', class: 'unclassified', requeueMs: 0 })
const MANUAL: Result = Object.freeze({ action: 'manual', class: 'unclassified', requeueMs: 0 })

/** Done: commit it. */
export function ack(): Result {
  return ACK
}

/** Done, and there was nothing to do: committed like an ack, counted apart. */
export function skip(): Result {
  return SKIP
}

/** It failed and may succeed later: deliver it again as soon as possible (or as the retry policy says). */
export function nak(error?: unknown): Result {
  return Object.freeze({ action: 'nak', class: 'retryable', requeueMs: 0, error })
}

/** What a nak may carry besides its delay and error. */
export type NakExtras = Pick<ResultOf<'nak'>, 'nextAttempt' | 'noEscalate' | 'note'>

/**
 * It failed and may succeed later, but not before `ms` have passed. With a retry policy around it the wait is a floor.
 * @throws RangeError if `ms` is not finite or is negative.
 */
export function nakAfter(ms: Ms, error?: unknown, extras: NakExtras = {}): Result {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw new OptionRangeError('nakAfter(ms)', 'a finite number >= 0', ms)
  }
  return Object.freeze({ action: 'nak', class: 'retryable', requeueMs: ms, error, ...extras })
}

/** It can never succeed: dead-letter it, do not deliver it again. */
export function term(error?: unknown): Result {
  return Object.freeze({ action: 'term', class: 'poison', requeueMs: 0, error })
}

/** Well formed, but wrong for the state it met: dead-letter it with that class. */
export function reject(error?: unknown): Result {
  return Object.freeze({ action: 'term', class: 'invalidForState', requeueMs: 0, error })
}

/** Its attempts are used up. The class stays `retryable`, so that the reason reads "gave up" rather than "poison". */
export function exhausted(error?: unknown): Result {
  return Object.freeze({ action: 'term', class: 'retryable', requeueMs: 0, error })
}

/** Still at it: extend the lease, settle nothing. */
export function inProgress(): Result {
  return IN_PROGRESS
}

/** The handler has settled the message through the vendor's own client: do nothing. */
export function manual(): Result {
  return MANUAL
}

/** True exactly for nak and term. */
export function isFailed(result: Result): boolean {
  return result.action === 'nak' || result.action === 'term'
}

/** The label of an action in telemetry and stores: snake case. What is not an action reads `unknown`. */
export function actionLabel(action: Action): string {
  if (action === 'inProgress') return 'in_progress'
  return Object.hasOwn(CLASSES_OF, action) ? action : 'unknown'
}

const CLASSES_OF: Readonly<Record<Action, readonly FailureClass[]>> = {
  ack: ['unclassified', 'drop'],
  nak: ['retryable', 'unclassified'],
  term: ['poison', 'invalidForState', 'retryable'],
  inProgress: ['unclassified'],
  manual: ['unclassified'],
}

/**
 * Whether a handler returned a Result. Goes by shape, so that results of another copy of the package and literals count;
 * a combination that the type forbids (a nak that is poison) does not. Never throws.
 */
export function isResult(value: unknown): value is Result {
  try {
    return isObject(value) && hasShape(value as Record<string, unknown>)
  } catch {
    return false
  }
}

function hasShape(value: Record<string, unknown>): boolean {
  const { action, requeueMs } = value
  if (typeof action !== 'string' || !Object.hasOwn(CLASSES_OF, action)) return false
  if (!CLASSES_OF[action as Action].includes(value['class'] as FailureClass)) return false
  if (action === 'nak') {
    const { nextAttempt, noEscalate, note } = value
    if (typeof requeueMs !== 'number' || !Number.isFinite(requeueMs) || requeueMs < 0) return false
    if (nextAttempt !== undefined && !(Number.isSafeInteger(nextAttempt) && (nextAttempt as number) >= 1)) return false
    if (note !== undefined && typeof note !== 'string') return false
    return noEscalate === undefined || noEscalate === true
  }
  if (requeueMs !== 0) return false
  if (action === 'term') return value['deadLettered'] === undefined || typeof value['deadLettered'] === 'boolean'
  return value['error'] === undefined
}
