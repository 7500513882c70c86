import type { Inspect, ItemQuery } from '../../../ports/inspect.js'
import type { ClaimedItem } from '../../../ports/item.js'
import type { ItemState } from '../../../ports/words.js'
import { holds } from '../check.js'
import { byLease, cancelled, complete, DAY, deadLetter, type LedgerBench, retry } from './bench.js'

/** The ids on all pages together. */
export async function everyPage(
  limit: number,
  fetch: (ask: { readonly limit: number; readonly cursor?: string }) => ReturnType<Inspect['list']>,
): Promise<string[]> {
  const found: string[] = []
  let cursor: string | undefined
  for (let page = 0; page < 50; page += 1) {
    const { items, next } = await fetch({ limit, ...(cursor === undefined ? {} : { cursor }) })
    holds(items.length <= limit, `a page has at most ${limit} items (it has ${items.length})`)
    found.push(...items.map(({ envelope }) => envelope.id))
    if (next === undefined) return found
    cursor = next
  }
  throw new Error('the pages did not end after 50 of them: the cursor does not move on')
}

/** All ids that fit the query, page by page. */
export const listed = (bench: LedgerBench, query: Omit<ItemQuery, 'limit'>, limit = 100): Promise<string[]> =>
  everyPage(limit, (ask) => bench.inspect.list({ ...query, ...ask }))

/** One item in every state. */
export async function oneOfEach(bench: LedgerBench): Promise<void> {
  const { time } = bench
  const make = (id: ItemState, delayMs = 0) =>
    bench.enqueue(id, { type: `type of ${id}`, tags: ['all', `tag of ${id}`] }, { delayMs })
  const leased = ['retrying', 'completed', 'dead', 'cancelled', 'active'] as const
  await bench.apply(
    'five enqueues',
    leased.map((id) => make(id)),
  )
  const [retrying, completed, dead, ended] = await bench.take(leased, { leaseTicks: 10_000 })
  await bench.apply('the rest', [
    retry(retrying, time.ms(1000)),
    complete(completed, '1'),
    deadLetter(dead, 'Error: x', [failed(bench, dead, { fingerprint: 'f-dead' })]),
    byLease(ended.lease, [cancelled('cancelled')]),
    make('scheduled', time.ms(1000)),
    make('waiting'),
    bench.gated('blocked', ['active']),
  ])
}

interface Failure {
  readonly fingerprint: string
  readonly class?: 'retryable' | 'poison'
  readonly error?: string
}

/** The attempt that a run which failed leaves behind. */
export function failed(bench: LedgerBench, claimed: ClaimedItem, how: Failure) {
  const now = bench.time.clock.now()
  const { class: of = 'retryable', error = `Error: ${claimed.lease.id}`, fingerprint } = how
  const { attempt, id } = claimed.envelope
  const was = { attempt, startedAt: now, endedAt: now, worker: 'w1', class: of, rule: 'default', error, fingerprint }
  return { do: 'recordAttempt', id, was } as const
}

/** Its run failed, and it is dead. */
export function died(bench: LedgerBench, claimed: ClaimedItem, how: Failure) {
  const { class: of = 'retryable', error = `Error: ${claimed.lease.id}` } = how
  return deadLetter(claimed, error, [failed(bench, claimed, how)], DAY, of)
}

/** Its run failed, and it is tried again later. */
export function retried(bench: LedgerBench, claimed: ClaimedItem, how: Failure) {
  return byLease(claimed.lease, [failed(bench, claimed, how), ...retry(claimed, bench.time.ms(10_000)).effects])
}
