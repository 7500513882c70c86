import type { FailureClass, Verdict } from '../failure/failure.js'
import type { At, Ms } from '../time/time.js'
import { MAX_DELAY_MS } from './backoff.js'

/** Everything that the decision depends on. */
export interface FailedAttempt {
  readonly verdict: Verdict
  /** What the user's own classifier said of it: `retry` overrules the class, `abort` the attempts that are left. */
  readonly said?: 'retry' | 'abort' | undefined
  /** The attempt that failed, from 1. */
  readonly attempt: number
  /** Attempts in all; `Infinity` for no cap. */
  readonly maxAttempts: number
  /** The wait after this attempt, chance included. Asked only when there will be one. */
  readonly delayMs: (attempt: number) => Ms
  /** A wait that the handler asked for, besides the verdict's own floor. */
  readonly floorMs?: Ms | undefined
  /** Whether a floor counts. Default true. */
  readonly honourFloor?: boolean | undefined
  readonly now: At
  /** It must have started before this. */
  readonly deadline?: At | undefined
}

/** What becomes of a failed attempt. */
export type RetryDecision =
  /** It is tried again after `delayMs`, as attempt `nextAttempt`. */
  | { readonly kind: 'retry'; readonly delayMs: Ms; readonly nextAttempt: number }
  /** It runs again at `to` as the same attempt. */
  | { readonly kind: 'defer'; readonly to: At; readonly delayMs: Ms }
  /** Not again: its attempts are used up, or trying again is pointless. */
  | { readonly kind: 'giveUp'; readonly ending: 'exhausted' | 'aborted'; readonly class: FailureClass }
  /** The next try would come after its deadline, so there is none. */
  | { readonly kind: 'expire' }

/**
 * The one decision after a failure, for streams and work alike. Pure: the same facts give the same decision.
 *
 * Giving up because of the class or an `abort` comes first; then a deferral, which spends no attempt; then the cap, where
 * the class stays `retryable` so that the reason reads "gave up"; then the deadline.
 */
export function decideRetry(failed: FailedAttempt): RetryDecision {
  const { verdict, said, attempt, maxAttempts, now, deadline } = failed
  const isPermanent = verdict.class === 'poison' || verdict.class === 'invalidForState'
  if (said === 'abort') return giveUp('aborted', isPermanent ? verdict.class : 'poison')
  if (verdict.deferTo !== undefined) {
    const to = Math.max(now, verdict.deferTo)
    return isAfter(to, deadline) ? EXPIRE : { kind: 'defer', to, delayMs: to - now }
  }
  if (isPermanent && said !== 'retry') return giveUp('aborted', verdict.class)
  // Written so that an attempt or a cap that is no number ends it: the other way round it would never end.
  if (!(attempt < maxAttempts)) return giveUp('exhausted', 'retryable')
  const delayMs = waitBefore(failed)
  return isAfter(now + delayMs, deadline) ? EXPIRE : { kind: 'retry', delayMs, nextAttempt: attempt + 1 }
}

const EXPIRE: RetryDecision = Object.freeze({ kind: 'expire' })

function giveUp(ending: 'exhausted' | 'aborted', failureClass: FailureClass): RetryDecision {
  return { kind: 'giveUp', ending, class: failureClass }
}

/** The backoff, or what was asked for if that is longer: a server's Retry-After is a floor, not a replacement. */
function waitBefore({ verdict, floorMs, honourFloor, delayMs, attempt }: FailedAttempt): Ms {
  const floor = honourFloor === false ? 0 : Math.max(verdict.floorMs ?? 0, floorMs ?? 0)
  // `|| 0`: a delay that is no number would otherwise poison every comparison after it.
  return Math.min(Math.max(Math.ceil(delayMs(attempt) || 0), Math.ceil(floor), 0), MAX_DELAY_MS)
}

function isAfter(at: At, deadline: At | undefined): boolean {
  return deadline !== undefined && at > deadline
}
