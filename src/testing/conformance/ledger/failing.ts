import type { Claimed } from '../../../ports/item.js'
import type { Inspect } from '../../../ports/ledger.js'
import { present } from '../check.js'
import { byLease, DAY, type LedgerBench, retry } from './bench.js'

/** A member of `inspect` that people's tools stand on. */
export function power<K extends 'flow' | 'failures' | 'count' | 'strays'>(bench: LedgerBench, name: K): Inspect[K] {
  const inspect = present(bench.ledger.inspect, '`inspect` of the ledger')
  return present(inspect[name], `\`inspect.${name}\``)
}

interface Failure {
  readonly fingerprint: string
  readonly class?: 'retryable' | 'poison'
  readonly error?: string
}

/** The attempt that a run which failed leaves behind. */
export function failed(bench: LedgerBench, claimed: Claimed, how: Failure) {
  const now = bench.time.clock.now()
  const { class: of = 'retryable', error = `Error: ${claimed.lease.id}`, fingerprint } = how
  const { attempt, id } = claimed.envelope
  const was = { attempt, startedAt: now, endedAt: now, worker: 'w1', class: of, rule: 'default', error, fingerprint }
  return { do: 'recordAttempt', id, was } as const
}

/** Its run failed, and it is dead. */
export function died(bench: LedgerBench, claimed: Claimed, how: Failure) {
  const { class: of = 'retryable', error = `Error: ${claimed.lease.id}` } = how
  const { id, groupId } = claimed.envelope
  return byLease(claimed.lease, [
    failed(bench, claimed, how),
    { do: 'park', id, ending: 'exhausted', class: of, error, keepMs: DAY },
    { do: 'closeGroup', groupId, by: 1 },
  ])
}

/** Its run failed, and it is tried again later. */
export function retried(bench: LedgerBench, claimed: Claimed, how: Failure) {
  return byLease(claimed.lease, [failed(bench, claimed, how), ...retry(claimed, bench.time.ms(10_000)).effects])
}
