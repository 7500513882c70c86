import type { FailureClass } from '../../core/failure/failure.js'
import { endingFingerprint } from '../../core/failure/fingerprint.js'
import { backoff } from '../../core/retry/backoff.js'
import { decideRetry } from '../../core/retry/decide-retry.js'
import { getDefaultRetryOptions } from '../../core/retry/retry-defaults.js'
import type { Random } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { Attempt, DeadEnding, EndedRun, EnvelopeHead } from '../../ports/item.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import { cancelText } from '../control/item-actions.js'
import { endEffects } from './end-effects.js'
import type { FinishedRun, Outcome } from './outcome.js'

/** How long what has ended is kept. */
export interface Retention {
  readonly completedMs: Ms
  readonly deadMs: Ms
}

/** What a settlement means, for events, counters and waiters. */
export type OutcomeSummary =
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
  /** It goes back unchanged, and runs again. */
  | { readonly kind: 'released' }

/** The settlement of a run, and what it means. */
export interface RunSettlement {
  readonly settlement: Settlement
  readonly summary: OutcomeSummary
}

type Threw = Extract<Outcome, { readonly kind: 'threw' }>

/** The rule that ends an item of an unknown type. */
export const UNKNOWN_TYPE = 'unknown-type'

/** The error text of an item whose deadline passed. */
const DEADLINE_EXCEEDED = 'deadline exceeded'

/**
 * Turns the end of a run into what is to be written. Everything is written in one step, and only under the run's lease: a run
 * that has lost its lease leaves no trace.
 */
export function settle(ran: FinishedRun, keep: Retention, now: At, random: Random): RunSettlement {
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
      return expired(ran, keep, outcome.hasRun === true ? [recordAttempt(ran, 'expired')] : [])
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

function returned(
  ran: FinishedRun,
  outcome: Extract<Outcome, { readonly kind: 'returned' }>,
  keep: Retention,
): RunSettlement {
  const { id, groupId } = ran.item.envelope
  const { result, children, gates, contributions } = outcome
  const summary: OutcomeSummary = result === undefined ? { kind: 'succeeded' } : { kind: 'succeeded', result }
  const keepMs = keep.completedMs
  const complete: Effect =
    result === undefined
      ? { do: 'complete', id, ending: 'completed', keepMs }
      : { do: 'complete', id, ending: 'completed', keepMs, result }
  const end = endEffects(ran.item.envelope, true, children.length > 0, gates)
  // Most runs queue nothing and give their group no value.
  if (children.length + gates.length + contributions.length === 0 && end.length === 1)
    return settled(ran, [recordAttempt(ran), complete, end[0]!], summary)
  const effects: Effect[] = [recordAttempt(ran)]
  // Children join before their parent leaves: the group's count reaches 0 only once.
  if (children.length > 0) {
    effects.push({ do: 'joinGroup', groupId, count: children.length })
    for (const child of children) effects.push({ do: 'enqueue', ...child })
  }
  effects.push(...gates)
  for (const contribution of contributions) effects.push({ do: 'setGroupValue', groupId, ...contribution })
  effects.push(complete, ...end)
  return settled(ran, effects, summary)
}

function threw(ran: FinishedRun, failure: Threw, keep: Retention, now: At, random: Random): RunSettlement {
  const { envelope } = ran.item
  const { verdict, error } = failure
  const policy = { ...getDefaultRetryOptions(), ...envelope.retry }
  const effects: Effect[] = [recordAttempt(ran, failure)]
  const decision = decideRetry({
    verdict,
    said: failure.override,
    attempt: envelope.attempt,
    maxAttempts: policy.attempts,
    delayMs: (attempt) => backoff(attempt, policy, random),
    now,
    deadline: envelope.deadline,
  })
  const again = (attempt: number, delayMs: Ms, why: 'retry' | 'deferred') =>
    effects.push({ do: 'retry', id: envelope.id, attempt, delayMs, reason: why })
  switch (decision.kind) {
    case 'retry': {
      const { delayMs, nextAttempt } = decision
      again(nextAttempt, delayMs, 'retry')
      return settled(ran, effects, { kind: 'retried', error, class: verdict.class, rule: verdict.rule, delayMs })
    }
    case 'defer':
      // A deferral is not a failure: it has neither class nor error.
      effects[0] = recordAttempt(ran, 'deferred')
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

function expired(ran: FinishedRun, keep: Retention, effects: Effect[]): RunSettlement {
  deadLetter(ran.item.envelope, keep, effects, 'expired', 'retryable', DEADLINE_EXCEEDED)
  return settled(ran, effects, { kind: 'expired', error: DEADLINE_EXCEEDED })
}

/** Kept as long as a completed item: it is not a failure that a person has to handle. */
function cancelled(
  ran: FinishedRun,
  { why, hasRun }: Extract<Outcome, { readonly kind: 'cancelled' }>,
  keep: Retention,
): RunSettlement {
  const error = cancelText(why)
  const effects: Effect[] = hasRun ? [recordAttempt(ran, 'cancelled')] : []
  deadLetter(ran.item.envelope, { ...keep, deadMs: keep.completedMs }, effects, 'cancelled', 'retryable', error)
  return settled(ran, effects, { kind: 'cancelled', error, why })
}

function dead(
  ran: FinishedRun,
  keep: Retention,
  effects: Effect[],
  how: Omit<Extract<OutcomeSummary, { kind: 'dead' }>, 'kind'>,
): RunSettlement {
  deadLetter(ran.item.envelope, keep, effects, how.ending, how.class, how.error)
  return settled(ran, effects, { kind: 'dead', ...how })
}

/** Ends an item that waits and that no worker handles. Guarded by its status: what a worker has claimed meanwhile runs. */
export function unrouted(envelope: EnvelopeHead, error: string, keep: Retention): Settlement {
  const effects: Effect[] = []
  deadLetter(envelope, keep, effects, 'unroutable', 'poison', error)
  return { guard: { by: 'status', id: envelope.id, in: ['pending'] }, effects }
}

function deadLetter(
  envelope: EnvelopeHead,
  keep: Retention,
  effects: Effect[],
  ending: DeadEnding,
  failureClass: FailureClass,
  error: string,
): void {
  const { id, type } = envelope
  // An item that ended without a failed run is grouped by how it ended. A cancelled one is not a failure.
  const hasFingerprint =
    ending === 'cancelled' || effects.some((one) => one.do === 'recordAttempt' && one.was.class !== undefined)
  const print = hasFingerprint ? {} : { fingerprint: endingFingerprint({ class: failureClass, ending, type, error }) }
  effects.push({ do: 'deadLetter', id, ending, class: failureClass, error, keepMs: keep.deadMs, ...print })
  effects.push(...endEffects(envelope, false))
}

function settled(ran: FinishedRun, effects: readonly Effect[], summary: OutcomeSummary): RunSettlement {
  return { settlement: { guard: { by: 'lease', lease: ran.item.lease }, effects }, summary }
}

function recordAttempt({ item, startedAt, endedAt, worker }: FinishedRun, how?: Threw | EndedRun): Effect {
  const { id, attempt } = item.envelope
  const was: Attempt = { attempt, startedAt, endedAt, worker }
  if (how === undefined) return { do: 'recordAttempt', id, was }
  if (typeof how === 'string') return { do: 'recordAttempt', id, was: { ...was, rule: how } }
  const { verdict, error, fingerprint, detail } = how
  const failed = { class: verdict.class, rule: verdict.rule, error, fingerprint }
  return { do: 'recordAttempt', id, was: { ...was, ...failed, ...(detail === undefined ? {} : { detail }) } }
}
