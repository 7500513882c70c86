import type { ItemQuery, Throughput } from '../../../ports/inspect.js'
import { ITEM_STATES } from '../../../ports/words.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { byLease, cancelled, complete, DAY, deadLetter, type LedgerBench, redrive, releaseNow } from './bench.js'
import { died, everyPage, failed, listed, oneOfEach, retried } from './inspect-bench.js'

const inOrder = (found: readonly Throughput[]) =>
  found
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
  await bench.apply(
    'the enqueues',
    made.map(({ id, type, queue, tag }) => bench.enqueue(id, { type, tags: [tag] }, { queue })),
  )
  const from = [bench.queue, bench.other()].map((queue) => ({ queue, max: 24 }))
  const { items } = await ledger.claim({ queues: from, leaseMs: time.ms(10_000), worker: 'w1' })
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
    await bench.apply('the ends of a half', ends)
    await time.pass(time.ms(1))
  }
  await bench.enqueueItems(['w1', 'w2'], { type: 'even', tags: ['red'] })
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

export const statisticsClauses = clausesOn<LedgerBench>()({
  'ledger: an item keeps its fingerprint until its next run has ended': {
    law: 'A redriven item is listed and counted under the fingerprint that it died with, in its new state, and no longer among failures; the end of its next run replaces it.',
    hint: 'whether `redrive` keeps the fingerprint, of the last run or of `deadLetter`, and whether `recordAttempt` replaces it, also by none.',
    needs: ['inspect'],
    async run(bench) {
      const [ran, late] = await bench.enqueueAndTake(['ran', 'late'], {}, { leaseTicks: 10_000 })
      const expired = {
        do: 'deadLetter',
        id: 'late',
        ending: 'expired',
        class: 'poison',
        error: 'too late',
        keepMs: DAY,
        fingerprint: 'f-late',
      } as const
      await bench.apply('two deaths', [
        died(bench, ran, { fingerprint: 'f-run' }),
        byLease(late.lease, [expired, { do: 'leaveGroup', groupId: 'g-late', count: 1 }]),
      ])
      const redrives = ['ran', 'late'].map((id) => redrive(id))
      await bench.apply('two redrives', redrives)
      for (const [fingerprint, id] of [
        ['f-run', 'ran'],
        ['f-late', 'late'],
      ] as const) {
        same(await listed(bench, { fingerprint }), [id], `items with ${fingerprint} after the redrive`)
        same(await listed(bench, { fingerprint, state: 'waiting' }), [id], `those of them that wait`)
        same(await listed(bench, { fingerprint, state: 'dead' }), [], `those of them that are dead`)
        same(await bench.inspect.count({ fingerprint }), 1, `how many have ${fingerprint}`)
      }
      same(await bench.inspect.failures(10), [], 'failures after the redrive')

      const [again, other] = await bench.take(['ran', 'late'], { leaseTicks: 10_000 })
      const now = bench.time.clock.now()
      const well = { attempt: 1, startedAt: now, endedAt: now, worker: 'w1' }
      await bench.apply('the ends of the next runs', [
        byLease(again.lease, [{ do: 'recordAttempt', id: 'ran', was: well }, ...complete(again).effects]),
        retried(bench, other, { fingerprint: 'f-run' }),
      ])
      same(await listed(bench, { fingerprint: 'f-run' }), ['late'], 'items with f-run after the next runs')
      same(await listed(bench, { fingerprint: 'f-late' }), [], 'items with f-late after the next runs')
    },
  },
  'ledger: filters narrow a list together': {
    law: 'Whatever filters a query has, the list is what fits all of them: on every page size, each item once.',
    hint: 'which filter the index is chosen by, and whether the others are applied to what it finds, without ending the pages early.',
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
        same(await bench.inspect.count(query), expected.length, `how many are dead by ${names.join(', ')}`)
      }
    },
  },
  'ledger: counts what a query matches': {
    law: 'count(query) is the number of items on all pages of list(query) together, exactly.',
    hint: 'whether what is due, over or beyond the first page is counted as the list has it.',
    needs: ['inspect'],
    async run(bench) {
      const count = bench.inspect.count
      await oneOfEach(bench)
      same(await count({}), 8, 'the number of all items')
      const queries: Omit<ItemQuery, 'limit'>[] = [
        ...ITEM_STATES.map((state) => ({ state })),
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
  'ledger: statistics leave expired items out': {
    law: 'An item whose retention is over is in no count, throughput or group of failures.',
    hint: 'whether what the sweep has not reached is left out.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { time } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'], { tags: ['x'] })
      const brief = deadLetter(b, 'Error: x', [failed(bench, b, { fingerprint: 'f' })], 5000)
      await bench.apply('the ends', [complete(a, '1', [], 5000), brief])
      const seen = async () => [
        await bench.inspect.count({}),
        await bench.inspect.count({ tag: 'x' }),
        await bench.inspect.count({ fingerprint: 'f' }),
        (await bench.inspect.throughput(60_000)).length,
        (await bench.inspect.failures(10)).length,
      ]
      same(await seen(), [2, 2, 1, 1, 1], 'counts, throughput and groups while they are kept')
      await time.pass(5001)
      same(await seen(), [0, 0, 0, 0, 0], 'counts, throughput and groups after the retention')
    },
  },
  'ledger: reports throughput by queue and type': {
    law: 'throughput(windowMs) reports for each queue and type how many items completed and died within the window, and the due time of the oldest waiting one.',
    hint: 'the range of end times, and whether cancelled, running and held items are left out.',
    needs: ['inspect', 'named queues'],
    async run(bench) {
      const { time } = bench
      const throughput = async (ticks: number) => inOrder(await bench.inspect.throughput(time.ms(ticks)))
      same(await throughput(1000), [], 'the throughput of an empty ledger')
      const early = ['e1', 'e2', 'e3', 'e4'] as const
      const [e1, e2, e3, e4] = await bench.enqueueAndTake(early, { type: 'mail' }, { leaseTicks: 10_000 })
      await bench.apply('four ends', [
        complete(e1, '1'),
        complete(e2, '1'),
        deadLetter(e3),
        byLease(e4.lease, [cancelled('e4')]),
      ])
      await time.pass(time.ms(6))
      const late = { queue: bench.other() }
      await bench.apply('two more, in another queue', [
        bench.enqueue('l1', { type: 'mail' }, late),
        bench.enqueue('run', { type: 'mail' }, late),
      ])
      const [l1] = await bench.take(['l1', 'run'], { queues: [{ queue: bench.other(), max: 5 }], leaseTicks: 10_000 })
      await bench.apply('the end of one', [complete(l1, '1')])
      const mail = { type: 'mail', oldestDueAt: undefined }
      const both = [
        { queue: bench.queue, ...mail, completed: 2, failed: 1 },
        { queue: bench.other(), ...mail, completed: 1, failed: 0 },
      ].toSorted((a, b) => (a.queue < b.queue ? -1 : 1))
      same(await throughput(10_000), both, 'what ended in a long window')
      same(
        await throughput(3),
        both.filter(({ queue }) => queue === bench.other()),
        'what ended in a short window',
      )
      await bench.enqueueItems(['w1'], { type: 'wait' })
      const since = present((await bench.view('w1')).dueAt, 'the due time of the waiting item')
      await time.pass(time.ms(1))
      await bench.apply('another waiting item, and a scheduled one', [
        bench.enqueue('w2', { type: 'wait', priority: 5 }),
        bench.enqueue('later', { type: 'wait' }, { delayMs: time.ms(10_000) }),
      ])
      const waiting = (await throughput(10_000)).find(({ type }) => type === 'wait')
      same(
        waiting,
        { queue: bench.queue, type: 'wait', completed: 0, failed: 0, oldestDueAt: since },
        'the throughput of a type that only waits',
      )
    },
  },
  'ledger: finds stuck items': {
    law: 'stuckItems() pages through open items that no claim can ever find; a release frees them. A sound ledger has none.',
    hint: 'the condition: running without a lease, or pending without due time and hold.',
    needs: ['inspect'],
    async run(bench) {
      const found = async (limit: number) => (await everyPage(limit, (ask) => bench.inspect.stuckItems(ask))).toSorted()
      await oneOfEach(bench)
      same(await found(10), [], 'stuck items among items of every state')
      const lost = ['s1', 's2', 's3', 's4', 's5']
      await bench.enqueueItems(lost, { type: 'lost' }, { delayMs: Number.POSITIVE_INFINITY })
      for (const limit of [1, 2, 100]) same(await found(limit), lost, `stuck items, ${limit} a page`)
      await bench.apply(
        'their release',
        lost.map((id) => releaseNow(id)),
      )
      same(await found(10), [], 'stuck items after the release')
      await bench.take([...lost, 'waiting'], { max: 10 })
      await bench.nothingToClaim('when all have been claimed')
    },
  },
})
