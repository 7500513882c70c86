import type { Inspect, ItemQuery } from '../../../ports/ledger.js'
import type { ItemStateWord } from '../../../ports/words.js'
import { holds, present } from '../check.js'
import { applied, byLease, DAY, enqueue, finish, gated, item, type LedgerBench, park, retry, take } from './bench.js'

export const inspectOf = (bench: LedgerBench): Inspect => present(bench.ledger.inspect, '`inspect` of the ledger')

/** All ids that fit the query, page by page. */
export async function listed(bench: LedgerBench, query: Omit<ItemQuery, 'limit'>, limit = 100): Promise<string[]> {
  const found: string[] = []
  let cursor: string | undefined
  for (let page = 0; page < 50; page += 1) {
    const { items, next } = await inspectOf(bench).list({
      ...query,
      limit,
      ...(cursor === undefined ? {} : { cursor }),
    })
    holds(items.length <= limit, `a page has at most ${limit} items (it has ${items.length})`)
    found.push(...items.map((seen) => String(seen.envelope.id)))
    if (next === undefined) return found
    cursor = next
  }
  throw new Error('the listing did not end after 50 pages: the cursor does not move on')
}

/** One item in every state that people have a word for. */
export async function oneOfEach(bench: LedgerBench): Promise<void> {
  const { ledger, time } = bench
  const make = (id: ItemStateWord, delayMs = 0) =>
    enqueue(bench, item(bench, id, { type: `type of ${id}`, tags: ['all', `tag of ${id}`] }), { delayMs })
  const leased = ['retrying', 'completed', 'dead', 'cancelled', 'active'] as const
  await applied(
    ledger,
    leased.map((id) => make(id)),
    'five enqueues',
  )
  const [retrying, completed, dead, cancelled] = await take(bench, leased, { leaseTicks: 10_000 })
  const attempt = {
    attempt: 1,
    startedAt: time.clock.now(),
    endedAt: time.clock.now(),
    worker: 'w1',
    fingerprint: 'f-dead',
  }
  const cancel = {
    do: 'park',
    id: 'cancelled',
    ending: 'cancelled',
    class: 'unclassified',
    error: 'x',
    keepMs: DAY,
  } as const
  await applied(
    ledger,
    [
      retry(retrying, time.ms(1000)),
      finish(completed, '1'),
      park(dead, 'Error: x', [{ do: 'recordAttempt', id: 'dead', was: attempt }]),
      byLease(cancelled.lease, [cancel]),
      make('scheduled', time.ms(1000)),
      make('waiting'),
      gated(bench, 'blocked', ['active']),
    ],
    'the rest',
  )
}
