import type { WritDoc } from '../clerk/writs/writ.js'
import { spiderStatusOf } from '../spider/dispatch/writ-status.js'
import type { RetryDescription } from './api.js'
import { MAX_RETRY_ATTEMPTS } from './cap.js'

/** The decision about a writ as it is now, given how many rigs it has had. Pure, so any reader of the books can ask. */
export function describeRetry(writ: WritDoc, attempts: number): RetryDescription {
  const leave = (reason: string): RetryDescription => decided(writ.id, attempts, 'leave', reason)
  const status = spiderStatusOf(writ)
  if (writ.phase !== 'stuck') {
    // What Spider observed outlives the requeue, and is worth knowing later.
    const before = status.stuckCause === 'engine-failure' ? ` It was stuck before: ${status.detail ?? ''}` : ''
    return leave(`The writ is ${writ.phase}, not stuck.${before}`)
  }
  if (status.retryable === undefined)
    return leave(
      status.stuckCause === undefined
        ? 'Nothing says that another attempt may succeed.'
        : `It is stuck by ${status.stuckCause}, which says nothing about another attempt.`,
    )
  if (!isRetryable(writ)) return leave('Its failure is of a kind that another attempt would repeat.')
  if (attempts >= MAX_RETRY_ATTEMPTS)
    return leave(`It has had ${attempts} of ${MAX_RETRY_ATTEMPTS} attempts; now a person has to look at it.`)
  return decided(writ.id, attempts, 'requeue', `It has had ${attempts} of ${MAX_RETRY_ATTEMPTS} attempts.`)
}

function decided(
  writId: string,
  attempts: number,
  decision: RetryDescription['decision'],
  reason: string,
): RetryDescription {
  return Object.freeze({ writId, attempts, cap: MAX_RETRY_ATTEMPTS, decision, reason })
}

/** Whether another attempt may succeed: `true`, and nothing that resembles it. */
export const isRetryable = (writ: WritDoc): boolean => spiderStatusOf(writ).retryable === true
