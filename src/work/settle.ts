import { backoff } from '../core/backoff.js'
import type { Random } from '../core/clock.js'
import { decideRetry } from '../core/decide-retry.js'
import type { FailureClass } from '../core/failure.js'
import { endingFingerprint } from '../core/fingerprint.js'
import { getDefaultRetryOptions } from '../core/retry-defaults.js'
import type { At, Ms } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Attempt, DeadEnding, EnvelopeHead } from '../ports/item.js'
import type { Effect, Settlement } from '../ports/settlement.js'
import { cancelText } from './cancel-text.js'
import type { Outcome, Ran } from './outcome.js'
import { tells } from './tells.js'

/** How long what has ended is kept. */
export interface Retention {
  readonly successMs: Ms
  readonly deadMs: Ms
}

/** What a settlement means, for events, counters and waiters. */
export type Told =
  | { readonly kind: 'succeeded'; readonly result?: string }
  | {
      readonly kind: 'retried'
      readonly error: string
      readonly class: FailureClass
      readonly rule: string
      readonly delayMs: Ms
    }
  | { readonly kind: 'deferred'; readonly runAt: At; readonly delayMs: Ms }
  | {
      readonly kind: 'dead'
      readonly ending: DeadEnding
      readonly error: string
      readonly class: FailureClass
      readonly rule: string
    }
  | { readonly kind: 'expired'; readonly error: string }
  | { readonly kind: 'cancelled'; readonly error: string; readonly why: string }
  /** It goes back as it was, and runs again elsewhere. */
  | { readonly kind: 'released' }

/** The settlement of a run, and what it means. */
export interface Settled {
  readonly settlement: Settlement
  readonly told: Told
}

/** The rule by which an item is dead whose type is unknown. */
export const UNKNOWN_TYPE = 'unknown-type'

/** The error text of an item whose deadline passed. */
const DEADLINE_EXCEEDED = 'deadline exceeded'

/**
 * Turns the end of a run into what is to be written. Pure: the engine only carries it. Everything of it happens at once
 * and only under the run's own lease, so that a run which lost its lease leaves no trace.
 */
export function settle(ran: Ran, keep: Retention, now: At, random: Random): Settled {
  const { outcome } = ran
  switch (outcome.kind) {
    case 'returned':
      return returned(ran, outcome, keep)
    case 'threw':
      return threw(ran, outcome, keep, now, random)
    case 'interrupted':
      return settled(ran, [{ do: 'release', id: ran.item.envelope.id }], { kind: 'released' })
    case 'waiting':
      return settled(ran, [{ do: 'release', id: ran.item.envelope.id, delayMs: outcome.delayMs }], { kind: 'released' })
    case 'expired':
      return expired(ran, keep, outcome.hasRun === true ? [recordAttempt(ran)] : [])
    case 'cancelled':
      return cancelled(ran, outcome, keep)
    case 'crashed':
      return dead(ran, keep, [], {
        ending: 'crashed',
        error: `crashed ${outcome.crashes} times`,
        class: 'poison',
        rule: 'crash-limit',
      })
    case 'unroutable':
      return dead(ran, keep, [], { ending: 'unroutable', error: outcome.error, class: 'poison', rule: UNKNOWN_TYPE })
    case 'unreadable':
      return dead(ran, keep, [], { ending: 'aborted', error: outcome.error, class: 'poison', rule: outcome.rule })
    default:
      return unreachable(outcome)
  }
}

function returned(ran: Ran, outcome: Extract<Outcome, { readonly kind: 'returned' }>, keep: Retention): Settled {
  const { id, groupId } = ran.item.envelope
  const { result, children } = outcome
  const effects: Effect[] = [recordAttempt(ran)]
  // Children are counted before their parent is settled, so that the group's count reaches 0 only once.
  if (children.length > 0) {
    effects.push({ do: 'openGroup', groupId, by: children.length })
    for (const child of children) effects.push({ do: 'push', ...child })
  }
  effects.push(...outcome.gates)
  for (const contribution of outcome.contributions) effects.push({ do: 'contribute', groupId, ...contribution })
  const keepMs = keep.successMs
  effects.push(
    result === undefined
      ? { do: 'finish', id, ending: 'done', keepMs }
      : { do: 'finish', id, ending: 'done', keepMs, result },
  )
  effects.push(...tells(ran.item.envelope, true, children.length > 0, outcome.gates))
  return settled(ran, effects, result === undefined ? { kind: 'succeeded' } : { kind: 'succeeded', result })
}

function threw(
  ran: Ran,
  failure: Extract<Outcome, { readonly kind: 'threw' }>,
  keep: Retention,
  now: At,
  random: Random,
): Settled {
  const { envelope } = ran.item
  const { verdict, error } = failure
  const policy = { ...getDefaultRetryOptions(), ...envelope.retry }
  const effects: Effect[] = [recordAttempt(ran, failure)]
  const decision = decideRetry({
    verdict,
    said: failure.said,
    attempt: envelope.attempt,
    maxAttempts: policy.attempts,
    delayMs: (attempt) => backoff(attempt, policy, random),
    now,
    deadline: envelope.deadline,
  })
  const again = (attempt: number, delayMs: Ms, why: 'retry' | 'deferred') =>
    effects.push({ do: 'retryAt', id: envelope.id, attempt, delayMs, why })
  switch (decision.kind) {
    case 'retry': {
      const { delayMs, nextAttempt } = decision
      again(nextAttempt, delayMs, 'retry')
      return settled(ran, effects, { kind: 'retried', error, class: verdict.class, rule: verdict.rule, delayMs })
    }
    case 'defer':
      // A deferral is no failure: it has neither class nor error.
      effects[0] = recordAttempt(ran)
      again(envelope.attempt, decision.delayMs, 'deferred')
      return settled(ran, effects, { kind: 'deferred', runAt: decision.to, delayMs: decision.delayMs })
    case 'giveUp': {
      const { ending, class: failureClass } = decision
      return dead(ran, keep, effects, { ending, error, class: failureClass, rule: verdict.rule })
    }
    case 'expire':
      return expired(ran, keep, effects)
    default:
      return unreachable(decision)
  }
}

function expired(ran: Ran, keep: Retention, effects: Effect[]): Settled {
  park(ran.item.envelope, keep, effects, 'expired', 'retryable', DEADLINE_EXCEEDED)
  return settled(ran, effects, { kind: 'expired', error: DEADLINE_EXCEEDED })
}

/** Kept as long as a success: it is no failure that anybody has to look at. */
function cancelled(
  ran: Ran,
  { why, hasRun }: Extract<Outcome, { readonly kind: 'cancelled' }>,
  keep: Retention,
): Settled {
  const error = cancelText(why)
  const effects: Effect[] = hasRun ? [recordAttempt(ran)] : []
  park(ran.item.envelope, { ...keep, deadMs: keep.successMs }, effects, 'cancelled', 'retryable', error)
  return settled(ran, effects, { kind: 'cancelled', error, why })
}

function dead(
  ran: Ran,
  keep: Retention,
  effects: Effect[],
  how: Omit<Extract<Told, { kind: 'dead' }>, 'kind'>,
): Settled {
  park(ran.item.envelope, keep, effects, how.ending, how.class, how.error)
  return settled(ran, effects, { kind: 'dead', ...how })
}

/** Ends an item that waits and that no worker handles. Guarded by its status: what a worker has claimed meanwhile runs. */
export function unrouted(envelope: EnvelopeHead, error: string, keep: Retention): Settlement {
  const effects: Effect[] = []
  park(envelope, keep, effects, 'unroutable', 'poison', error)
  return { guard: { by: 'status', id: envelope.id, in: ['pending'] }, effects }
}

function park(
  envelope: EnvelopeHead,
  keep: Retention,
  effects: Effect[],
  ending: DeadEnding,
  failureClass: FailureClass,
  error: string,
): void {
  const { id, type } = envelope
  // What no failed run tells of is grouped by how it ended. A cancelled one is nobody's failure.
  const isTold =
    ending === 'cancelled' || effects.some((one) => one.do === 'recordAttempt' && one.was.class !== undefined)
  const print = isTold ? {} : { fingerprint: endingFingerprint({ class: failureClass, ending, type, error }) }
  effects.push({ do: 'park', id, ending, class: failureClass, error, keepMs: keep.deadMs, ...print })
  effects.push(...tells(envelope, false))
}

function settled(ran: Ran, effects: readonly Effect[], told: Told): Settled {
  return { settlement: { guard: { by: 'lease', lease: ran.item.lease }, effects }, told }
}

function recordAttempt(ran: Ran, failure?: Extract<Outcome, { readonly kind: 'threw' }>): Effect {
  const { startedAt, endedAt, worker } = ran
  const { id, attempt } = ran.item.envelope
  if (failure === undefined) return { do: 'recordAttempt', id, was: { attempt, startedAt, endedAt, worker } }
  const { verdict, error, fingerprint } = failure
  const was: Attempt = {
    attempt,
    startedAt,
    endedAt,
    worker,
    class: verdict.class,
    rule: verdict.rule,
    error,
    fingerprint,
  }
  return { do: 'recordAttempt', id, was }
}
