import type { Inspect, ItemQuery } from '../../../ports/ledger.js'
import { ITEM_STATE_WORDS, type ItemStateWord } from '../../../ports/words.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  claim,
  DAY,
  enqueue,
  finish,
  gated,
  item,
  type LedgerBench,
  park,
  retry,
  take,
  worker,
} from './bench.js'

const inspectOf = (bench: LedgerBench): Inspect => present(bench.ledger.inspect, '`inspect` of the ledger')

/** All ids that fit the query, page by page. */
async function listed(bench: LedgerBench, query: Omit<ItemQuery, 'limit'>, limit = 100): Promise<string[]> {
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
async function oneOfEach(bench: LedgerBench): Promise<void> {
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

export const inspectClauses = clausesOn<LedgerBench>()({
  'ledger: lists items by their state': {
    law: 'list({ state }) returns exactly the items in that state, in the words that everything uses.',
    look: 'how states are derived from status, hold, due time, attempt and ending: words.ts has the one table.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      for (const state of ITEM_STATE_WORDS) same(await listed(bench, { state }), [state], `items in the state ${state}`)
      same((await listed(bench, {})).toSorted(), [...ITEM_STATE_WORDS].toSorted(), 'items without a filter')
    },
  },
  'ledger: lists items by type, queue, group, tag, class and fingerprint': {
    law: 'Each filter of a query narrows the list, alone and together with a state.',
    look: 'the index or scan behind each filter.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      same(await listed(bench, { type: 'type of waiting' }), ['waiting'], 'items of a type')
      same(await listed(bench, { groupId: 'g-active' }), ['active'], 'items of a group')
      same(await listed(bench, { tag: 'tag of dead' }), ['dead'], 'items with a tag')
      same((await listed(bench, { tag: 'all' })).length, 7, 'the number of items with a tag that seven have')
      same(await listed(bench, { class: 'retryable' }), ['dead'], 'items of a class')
      same(await listed(bench, { fingerprint: 'f-dead' }), ['dead'], 'items with a fingerprint')
      same((await listed(bench, { queue: bench.queue })).length, 8, 'the number of items of the queue')
      same(await listed(bench, { queue: 'no such queue' }), [], 'items of a queue that does not exist')
      same(await listed(bench, { state: 'dead', tag: 'all' }), ['dead'], 'dead items with a tag')
      same(
        await listed(bench, { state: 'completed', type: 'type of dead' }),
        [],
        'completed items of the type of another',
      )
    },
  },
  'ledger: pages have no gaps and no repetitions': {
    law: 'Following the cursor to the end lists every item once, whatever the page size.',
    look: 'whether the cursor names a position in a total order.',
    needs: ['inspect'],
    async run(bench) {
      const names = Array.from({ length: 23 }, (_, i) => `i${String(i).padStart(2, '0')}`)
      await applied(
        bench.ledger,
        names.map((id) => enqueue(bench, item(bench, id))),
        'the enqueues',
      )
      for (const limit of [1, 5, 23, 100]) {
        same((await listed(bench, { state: 'waiting' }, limit)).toSorted(), names, `items over pages of ${limit}`)
        same((await listed(bench, {}, limit)).toSorted(), names, `items over pages of ${limit}, without a filter`)
      }
    },
  },
  'ledger: counts agree with the lists': {
    law: 'counts() tells for each queue and type how many items are in each state.',
    look: 'whether counters are moved with every change of state, or counted when asked.',
    needs: ['inspect'],
    async run(bench) {
      await oneOfEach(bench)
      const total: Partial<Record<ItemStateWord, number>> = {}
      for (const { queue, counts } of await inspectOf(bench).counts()) {
        same(queue, bench.queue, 'the queue of a count')
        for (const [word, n] of Object.entries(counts) as [ItemStateWord, number][])
          total[word] = (total[word] ?? 0) + n
      }
      for (const state of ITEM_STATE_WORDS) same(total[state] ?? 0, 1, `the number of items in the state ${state}`)
      const counted = (await inspectOf(bench).counts()).find(({ type }) => type === 'type of dead')
      same(counted?.counts.dead, 1, 'the number of dead items of one type')
    },
  },
  'ledger: an item becomes waiting when it falls due': {
    law: 'States follow the time of the backend: what was scheduled or retrying is waiting once it is due.',
    look: 'whether lists and counts compare the due time with now, also before a claim has promoted the item.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'), { delayMs: 1000 })], 'the enqueue')
      same(await listed(bench, { state: 'scheduled' }), ['a'], 'scheduled items')
      await time.pass(1000)
      same(await listed(bench, { state: 'waiting' }), ['a'], 'waiting items, when it is due')
      same(await listed(bench, { state: 'scheduled' }), [], 'scheduled items, when it is due')
    },
  },
  'ledger: what has expired is neither listed nor counted': {
    law: 'An item whose retention is over is in no list and no count.',
    look: 'whether removal reaches every index.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const both = ['a', 'b'].map((id) => enqueue(bench, item(bench, id, { tags: ['x'] })))
      await applied(ledger, both, 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'])
      await applied(ledger, [finish(a, '1', [], 5000), park(b, 'Error: x', [], 5000)], 'the ends')
      same((await listed(bench, { tag: 'x' })).toSorted(), ['a', 'b'], 'items with a tag')
      await time.pass(5001)
      same(await listed(bench, { tag: 'x' }), [], 'items with a tag, after the retention')
      same(await listed(bench, { state: 'dead' }), [], 'dead items, after the retention')
      const sum = (await inspectOf(bench).counts()).flatMap(({ counts }) => Object.values(counts))
      same(
        sum.reduce((n, m) => n + m, 0),
        0,
        'the sum of all counts, after the retention',
      )
    },
  },
  'ledger: knows the workers that have been heard of': {
    law: 'A worker that extends leases is in workers(), with what it told of itself and when.',
    look: 'whether the record that rides on heartbeats is stored, also with no leases to extend.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const { items } = await claim(bench, { worker: 'w-1' })
      const me = { ...worker('w-1'), types: ['t', 'u'] }
      await ledger.extend([{ lease: items[0]!.lease, started: true }], time.ms(30), me)
      const { seenAt, ...known } = present(
        (await inspectOf(bench).workers()).find((w) => w.id === 'w-1'),
        'the worker that extended a lease',
      )
      same({ ...known }, { ...me }, 'what it told of itself')
      if (time.exact) same(seenAt, time.clock.now(), 'when it was seen')
    },
  },
})
