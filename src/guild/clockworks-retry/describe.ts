import type { WritDoc } from '../clerk/writs/writ.js'
import { spiderStatusOf } from '../spider/dispatch/writ-status.js'
import type { Clause } from '../stacks/query/query.js'
import type { RetryDescription } from './api.js'
import { type ResolvedRigRetry, rigDelayMs, rigPolicyOf } from './policy.js'

/** The durable watcher that opens writs again, by its name in the store. */
export const RETRY_WATCHER = 'clockworks-retry'

/** What of a dead event of that watcher matters here. */
export interface DeadRetry {
  readonly id: string
  readonly error: string
  readonly tries: number
}

/** What a decision goes by besides the writ. */
export interface RetryFacts {
  /** Default: that of a guild that configures nothing. */
  readonly policy?: ResolvedRigRetry
  /** The event of its failure, if that could not be handled. */
  readonly dead?: DeadRetry | undefined
}

/** The decision about a writ as it is now, given how many rigs it has had. Pure, so any reader of the books can ask. */
export function describeRetry(
  writ: WritDoc,
  attempts: number,
  { policy = rigPolicyOf({}, writ.type), dead }: RetryFacts = {},
): RetryDescription {
  const cap = policy.maxRigs
  const decided = (decision: RetryDescription['decision'], reason: string, wait = {}): RetryDescription =>
    Object.freeze({ writId: writ.id, attempts, cap, decision, reason, ...wait })
  const leave = (reason: string): RetryDescription => decided('leave', reason)
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
  if (!isRetryableWrit(writ)) return leave('Its failure is of a kind that another attempt would repeat.')
  if (attempts >= cap) return leave(`It has had ${attempts} of ${cap} attempts; now a person has to look at it.`)
  if (dead !== undefined)
    return leave(
      `It has had ${attempts} of ${cap} attempts, but it could not be opened again (${dead.error}; tried ${dead.tries === 1 ? 'once' : `${dead.tries} times`}). ` +
        `Try that again with stacks.redeliver("${dead.id}"), open it by hand, or start the guild again.`,
    )
  const delayMs = rigDelayMs(policy, attempts)
  return decided('requeue', `It has had ${attempts} of ${cap} attempts.`, delayMs > 0 ? { delayMs } : {})
}

/** Whether another attempt may succeed: `true`, and nothing that resembles it. */
export const isRetryableWrit = (writ: WritDoc): boolean => spiderStatusOf(writ).retryable === true

/** The query that finds, among dead events, that of the failure by which this writ is stuck. */
export function deadRetryOf(writ: WritDoc): Clause {
  const { rigId = null } = spiderStatusOf(writ)
  return [
    ['watcher', '=', RETRY_WATCHER],
    ['event.entry.id', '=', writ.id],
    ['event.entry.status.spider.rigId', '=', rigId],
  ]
}
