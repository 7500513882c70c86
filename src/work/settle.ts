import { backoff } from '../core/backoff.js'
import type { Random } from '../core/clock.js'
import { decideRetry } from '../core/decide-retry.js'
import type { FailureClass } from '../core/failure.js'
import { getDefaultRetryOptions } from '../core/retry-defaults.js'
import type { At, Ms } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Attempt, DeadEnding, Envelope } from '../ports/item.js'
import type { Effect, Settlement } from '../ports/settlement.js'
import type { Outcome, Ran } from './outcome.js'

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
  /** It goes back as it was, and runs again elsewhere. */
  | { readonly kind: 'released' }

/** The settlement of a run, and what it means. */
export interface Settled {
  readonly settlement: Settlement
  readonly told: Told
}

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
    case 'expired':
      return expired(ran, keep, [])
    case 'crashed':
      return dead(ran, keep, [], {
        ending: 'crashed',
        error: `crashed ${outcome.crashes} times`,
        class: 'poison',
        rule: 'crash-limit',
      })
    case 'unroutable':
      return dead(ran, keep, [], { ending: 'unroutable', error: outcome.error, class: 'poison', rule: 'unknown-type' })
    case 'unreadable':
      return dead(ran, keep, [], { ending: 'aborted', error: outcome.error, class: 'poison', rule: 'decode' })
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
  tellOthers(effects, ran.item.envelope, true)
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
  park(ran, keep, effects, 'expired', 'retryable', DEADLINE_EXCEEDED)
  return settled(ran, effects, { kind: 'expired', error: DEADLINE_EXCEEDED })
}

function dead(
  ran: Ran,
  keep: Retention,
  effects: Effect[],
  how: Omit<Extract<Told, { kind: 'dead' }>, 'kind'>,
): Settled {
  park(ran, keep, effects, how.ending, how.class, how.error)
  return settled(ran, effects, { kind: 'dead', ...how })
}

function park(
  ran: Ran,
  keep: Retention,
  effects: Effect[],
  ending: DeadEnding,
  failureClass: FailureClass,
  error: string,
): void {
  const { envelope } = ran.item
  effects.push({ do: 'park', id: envelope.id, ending, class: failureClass, error, keepMs: keep.deadMs })
  tellOthers(effects, envelope, false)
}

/** What an end means to others: its group has one less open, and the gates that count it hear of it. */
function tellOthers(effects: Effect[], envelope: Envelope, ok: boolean): void {
  effects.push({ do: 'closeGroup', groupId: envelope.groupId, by: 1 })
  for (const key of envelope.gates ?? []) effects.push({ do: 'tellGate', key, member: envelope.id, ok })
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
