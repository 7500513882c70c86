import type { Flow, ItemQuery } from '../../../ports/ledger.js'
import { ITEM_STATE_WORDS } from '../../../ports/words.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  DAY,
  enqueue,
  finish,
  item,
  type LedgerBench,
  nothingToClaim,
  park,
  take,
  view,
} from './bench.js'
import { died, failed, power, retried } from './failing.js'
import { listed, oneOfEach } from './listing.js'

const inOrder = (flows: readonly Flow[]) =>
  flows
    .map(({ queue, type, completed, failed, oldestDueAt }) => ({ queue, type, completed, failed, oldestDueAt }))
    .toSorted((a, b) => (`${a.queue} ${a.type}` < `${b.queue} ${b.type}` ? -1 : 1))

/** Two dozen dead items that differ in type, queue, tag, class, fingerprint and end, and some that are alive. */
async function manyDead(bench: LedgerBench) {
  const { ledger, time } = bench
  const made = Array.from({ length: 24 }, (_, i) => ({
    id: `d${String(i).padStart(2, '0')}`,
    type: i % 2 === 0 ? 'even' : 'odd',
    queue: i % 3 === 0 ? bench.other() : bench.queue,
    tag: i % 4 === 0 ? 'red' : 'blue',
    class: i % 5 === 0 ? ('poison' as const) : ('retryable' as const),
    fingerprint: i % 6 < 3 ? 'f1' : 'f2',
    endAt: 0,
  }))
  await applied(
    ledger,
    made.map(({ id, type, queue, tag }) => enqueue(bench, item(bench, id, { type, tags: [tag] }), { queue })),
    'the enqueues',
  )
  const from = [bench.queue, bench.other()].map((queue) => ({ queue, max: 24 }))
  const { items } = await ledger.claim({ from, leaseMs: time.ms(10_000), worker: 'w1' })
  for (const half of [made.slice(0, 12), made.slice(12)]) {
    // One instant for all of a half: in real time a millisecond may pass while they are made.
    const endAt = time.clock.now()
    const ends = half.map((one) => {
      one.endAt = endAt
      return died(
        bench,
        present(
          items.find(({ lease }) => lease.id === one.id),
          `the claimed item ${one.id}`,
        ),
        one,
      )
    })
    await applied(ledger, ends, 'the ends of a half')
    await time.pass(time.ms(1))
  }
  const alive = ['w1', 'w2'].map((id) => enqueue(bench, item(bench, id, { type: 'even', tags: ['red'] })))
  await applied(ledger, alive, 'two that live')
  return made
}

const COMBINED: readonly (readonly (keyof ItemQuery)[])[] = [
  ['fingerprint', 'class'],
  ['fingerprint', 'type', 'queue'],
  ['fingerprint', 'tag'],
  ['class', 'tag', 'type'],
  ['class', 'queue'],
  ['tag', 'queue', 'type'],
  ['type', 'queue'],
  ['before'],
  ['before', 'fingerprint'],
  ['before', 'class', 'type'],
  ['before', 'tag', 'queue'],
  ['fingerprint', 'class', 'type', 'queue', 'tag', 'before'],
  ['after'],
  ['after', 'before'],
  ['after', 'fingerprint'],
  ['after', 'before', 'class', 'type'],
  ['after', 'tag', 'queue'],
]

export const insightClauses = clausesOn<LedgerBench>()({
  'ledger: an item keeps what it failed of until its next run has ended': {
    law: 'A redriven item is listed and counted under the fingerprint that it died with, in its new state, and no longer among failures; the end of its next run replaces it.',
    look: 'whether `reopen` keeps the fingerprint, of the last run or of `park`, and whether `recordAttempt` replaces it, also by none.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const enqueues = ['ran', 'late'].map((id) => enqueue(bench, item(bench, id)))
      await applied(ledger, enqueues, 'two enqueues')
      const [ran, late] = await take(bench, ['ran', 'late'], { leaseTicks: 10_000 })
      const expired = {
        do: 'park',
        id: 'late',
        ending: 'expired',
        class: 'poison',
        error: 'too late',
        keepMs: DAY,
        fingerprint: 'f-late',
      } as const
      await applied(
        ledger,
        [
          died(bench, ran, { fingerprint: 'f-run' }),
          byLease(late.lease, [expired, { do: 'closeGroup', groupId: 'g-late', by: 1 }]),
        ],
        'two deaths',
      )
      const redrives = ['ran', 'late'].map((id) => ({
        guard: { by: 'status', id, in: ['dead'] } as const,
        effects: [
          { do: 'openGroup', groupId: `g-${id}`, by: 1 },
          { do: 'reopen', id, delayMs: 0 },
        ] as const,
      }))
      await applied(ledger, redrives, 'two redrives')
      for (const [fingerprint, id] of [
        ['f-run', 'ran'],
        ['f-late', 'late'],
      ] as const) {
        same(await listed(bench, { fingerprint }), [id], `items with ${fingerprint} after the redrive`)
        same(await listed(bench, { fingerprint, state: 'waiting' }), [id], `those of them that wait`)
        same(await listed(bench, { fingerprint, state: 'dead' }), [], `those of them that are dead`)
        same(await power(bench, 'count')({ fingerprint }), 1, `how many have ${fingerprint}`)
      }
      same(await power(bench, 'failures')(10), [], 'failures after the redrive')

      const [again, other] = await take(bench, ['ran', 'late'], { leaseTicks: 10_000 })
      const now = bench.time.clock.now()
      const well = { attempt: 1, startedAt: now, endedAt: now, worker: 'w1' }
      await applied(
        ledger,
        [
          byLease(again.lease, [{ do: 'recordAttempt', id: 'ran', was: well }, ...finish(again).effects]),
          retried(bench, other, { fingerprint: 'f-run' }),
        ],
        'the ends of the next runs',
      )
      same(await listed(bench, { fingerprint: 'f-run' }), ['late'], 'items with f-run after the next runs')
      same(await listed(bench, { fingerprint: 'f-late' }), [], 'items with f-late after the next runs')
    },
  },
  'ledger: filters narrow a list together': {
    law: 'Whatever filters a query has, the list is what fits all of them: on every page size, each item once.',
    look: 'which filter the index is chosen by, and whether the others are applied to what it finds, without ending the pages early.',
    needs: ['inspect', 'named queues'],
    async run(bench) {
      const made = await manyDead(bench)
      const first = made[0]!
      const sample: Partial<Record<keyof ItemQuery, string | number>> = {
        ...first,
        fingerprint: 'f1',
        before: made[23]!.endAt,
      }
      for (const names of COMBINED) {
        // Two halves ended, one after the other: the second, or with `before` a window that holds the first.
        sample.after = names.includes('before') ? first.endAt : made[23]!.endAt
        const filters = Object.fromEntries(names.map((name) => [name, sample[name]])) as Partial<ItemQuery>
        const fitting = made.filter((one) =>
          names.every((name) => {
            if (name === 'before') return one.endAt < made[23]!.endAt
            if (name === 'after') return names.includes('before') || one.endAt >= made[23]!.endAt
            return one[name as 'type'] === sample[name]
          }),
        )
        const expected = fitting.map(({ id }) => id).toSorted()
        holds(expected.length > 0, `some fit ${names.join(', ')}`)
        const query = { state: 'dead', ...filters } as const
        for (const limit of [1, 3, 100])
          same((await listed(bench, query, limit)).toSorted(), expected, `dead by ${names.join(', ')}, ${limit} a page`)
        same(await power(bench, 'count')(query), expected.length, `how many are dead by ${names.join(', ')}`)
      }
    },
  },
  'ledger: counts what a query matches': {
    law: 'count(query) is the number of items on all pages of list(query) together, exactly.',
    look: 'whether what is due, over or beyond the first page is counted as the list has it.',
    needs: ['inspect'],
    async run(bench) {
      const count = power(bench, 'count')
      await oneOfEach(bench)
      same(await count({}), 8, 'the number of all items')
      const queries: Omit<ItemQuery, 'limit'>[] = [
        ...ITEM_STATE_WORDS.map((state) => ({ state })),
        { tag: 'all' },
        { state: 'dead', tag: 'all' },
        { type: 'type of waiting' },
        { state: 'waiting', type: 'type of waiting' },
        { state: 'dead', type: 'type of waiting' },
        { queue: bench.queue },
        { queue: 'no such queue' },
        { groupId: 'g-active' },
        { groupId: 'g-active', state: 'dead' },
        { class: 'retryable' },
        { fingerprint: 'f-dead' },
        { fingerprint: 'f-dead', class: 'poison' },
        { class: 'retryable', state: 'waiting' },
        { fingerprint: 'f-dead', state: 'retrying' },
        { groupId: 'g-dead', state: 'dead' },
        { tag: 'all', state: 'blocked' },
        { before: bench.time.clock.now() + DAY },
        { before: 1 },
        { state: 'dead', before: bench.time.clock.now() + DAY },
        { after: 1 },
        { after: bench.time.clock.now() + DAY },
        { state: 'dead', after: 1 },
        { state: 'dead', after: 1, before: bench.time.clock.now() + DAY },
        { state: 'waiting', after: 1 },
      ]
      for (const query of queries)
        same(await count(query), (await listed(bench, query)).length, `the number of ${JSON.stringify(query)}`)
      if (!bench.time.exact) return
      await bench.time.pass(bench.time.ms(1001))
      for (const state of ['scheduled', 'retrying'] as const)
        same(await count({ state }), 0, `the number of those ${state}, once they are due`)
      same(await count({ state: 'waiting' }), 3, 'the number of those waiting, once two more are due')
    },
  },
  'ledger: what has expired is not counted': {
    law: 'An item whose retention is over is in no count, flow or group of failures.',
    look: 'whether what the sweep has not reached is left out.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(
        ledger,
        ['a', 'b'].map((id) => enqueue(bench, item(bench, id, { tags: ['x'] }))),
        'two enqueues',
      )
      const [a, b] = await take(bench, ['a', 'b'])
      const brief = park(b, 'Error: x', [failed(bench, b, { fingerprint: 'f' })], 5000)
      await applied(ledger, [finish(a, '1', [], 5000), brief], 'the ends')
      const seen = async () => [
        await power(bench, 'count')({}),
        await power(bench, 'count')({ tag: 'x' }),
        await power(bench, 'count')({ fingerprint: 'f' }),
        (await power(bench, 'flow')(60_000)).length,
        (await power(bench, 'failures')(10)).length,
      ]
      same(await seen(), [2, 2, 1, 1, 1], 'counts, flows and groups while they are kept')
      await time.pass(5001)
      same(await seen(), [0, 0, 0, 0, 0], 'counts, flows and groups after the retention')
    },
  },
  'ledger: tells what flows': {
    law: 'flow(windowMs) tells for each queue and type how many completed and died within the window, and since when the oldest waits.',
    look: 'the range of end times, and whether cancelled, running and held items are left out.',
    needs: ['inspect', 'named queues'],
    async run(bench) {
      const { ledger, time } = bench
      const flow = async (ticks: number) => inOrder(await power(bench, 'flow')(time.ms(ticks)))
      same(await flow(1000), [], 'the flow of nothing')
      const early = ['e1', 'e2', 'e3', 'e4'] as const
      await applied(
        ledger,
        early.map((id) => enqueue(bench, item(bench, id, { type: 'mail' }))),
        'four enqueues',
      )
      const [e1, e2, e3, e4] = await take(bench, early, { leaseTicks: 10_000 })
      const cancel = {
        do: 'park',
        id: 'e4',
        ending: 'cancelled',
        class: 'unclassified',
        error: 'x',
        keepMs: DAY,
      } as const
      await applied(ledger, [finish(e1, '1'), finish(e2, '1'), park(e3), byLease(e4.lease, [cancel])], 'four ends')
      await time.pass(time.ms(6))
      const late = { queue: bench.other() }
      await applied(
        ledger,
        [
          enqueue(bench, item(bench, 'l1', { type: 'mail' }), late),
          enqueue(bench, item(bench, 'run', { type: 'mail' }), late),
        ],
        'two more, in another queue',
      )
      const [l1] = await take(bench, ['l1', 'run'], { from: [{ queue: bench.other(), max: 5 }], leaseTicks: 10_000 })
      await applied(ledger, [finish(l1, '1')], 'the end of one')
      const mail = { type: 'mail', oldestDueAt: undefined }
      const both = [
        { queue: bench.queue, ...mail, completed: 2, failed: 1 },
        { queue: bench.other(), ...mail, completed: 1, failed: 0 },
      ].toSorted((a, b) => (a.queue < b.queue ? -1 : 1))
      same(await flow(10_000), both, 'what ended in a long window')
      same(
        await flow(3),
        both.filter(({ queue }) => queue === bench.other()),
        'what ended in a short window',
      )
      await applied(ledger, [enqueue(bench, item(bench, 'w1', { type: 'wait' }))], 'one that waits')
      const since = present((await view(bench, 'w1')).dueAt, 'the due time of one that waits')
      await time.pass(time.ms(1))
      await applied(
        ledger,
        [
          enqueue(bench, item(bench, 'w2', { type: 'wait', priority: 5 })),
          enqueue(bench, item(bench, 'later', { type: 'wait' }), { delayMs: time.ms(10_000) }),
        ],
        'one more that waits, and one that is scheduled',
      )
      const waiting = (await flow(10_000)).find(({ type }) => type === 'wait')
      same(
        waiting,
        { queue: bench.queue, type: 'wait', completed: 0, failed: 0, oldestDueAt: since },
        'the flow of a type that only waits',
      )
    },
  },
  'ledger: finds what nothing will ever put to work': {
    law: 'strays() pages through the unfinished items that no claim can ever find; a release frees them. A sound ledger has none.',
    look: 'the condition: running without a lease, or pending without due time and hold.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const found = async (limit: number) => {
        const ids: string[] = []
        let cursor: string | undefined
        for (let page = 0; page < 50; page += 1) {
          const { items, next } = await power(bench, 'strays')({ limit, ...(cursor === undefined ? {} : { cursor }) })
          holds(items.length <= limit, `a page has at most ${limit} items (it has ${items.length})`)
          ids.push(...items.map(({ envelope }) => envelope.id))
          if (next === undefined) return ids.toSorted()
          cursor = next
        }
        throw new Error('the strays did not end after 50 pages: the cursor does not move on')
      }
      await oneOfEach(bench)
      same(await found(10), [], 'strays among items of every state')
      const lost = ['s1', 's2', 's3', 's4', 's5']
      await applied(
        ledger,
        lost.map((id) => enqueue(bench, item(bench, id, { type: 'lost' }), { delayMs: Number.POSITIVE_INFINITY })),
        'five that are never due, and that nothing holds',
      )
      for (const limit of [1, 2, 100]) same(await found(limit), lost, `strays, ${limit} a page`)
      await applied(
        ledger,
        lost.map((id) => ({
          guard: { by: 'status', id, in: ['pending'] },
          effects: [{ do: 'release', id, delayMs: 0 }],
        })),
        'their release',
      )
      same(await found(10), [], 'strays after the release')
      await take(bench, [...lost, 'waiting'], { max: 10 })
      await nothingToClaim(bench, 'when all have been claimed')
    },
  },
})
