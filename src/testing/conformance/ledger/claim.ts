import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { complete, ids, type LedgerBench, release } from './bench.js'

export const claimClauses = clausesOn<LedgerBench>()({
  'ledger: claims by priority, then due time, then arrival': {
    law: 'The order of claim is priority descending, due time, arrival.',
    hint: 'the order of the ready index; an item promoted when it falls due takes the place of its due time.',
    needs: ['arrival order', 'priority'],
    async run(bench) {
      const { ledger, time } = bench
      const at = async (id: string, priority: number, delayMs = 0) => {
        await bench.apply(`the enqueue of ${id}`, [bench.enqueue(id, { priority }, { delayMs })])
        await time.pass(time.ms(1))
      }
      // What is delayed falls due long after the last is sent, also where time is real and the machine slow.
      await at('p-1 without delay', -1)
      await at('p0 delayed, sent first', 0, time.ms(9))
      await at('p0 without delay', 0)
      await at('p7 delayed, sent first', 7, time.ms(9))
      await at('p7 without delay', 7)
      const batch = ['x', 'y', 'z'].map((id) => bench.enqueue(id))
      // Over plain ports each enqueue of a batch is a row of calls, and one may overtake another.
      if (ledger.atomic) await bench.apply('three enqueues in one batch', batch)
      else for (const one of batch) await bench.apply('three enqueues, one after the other', [one])
      const high = ['p7 without delay', 'p7 delayed, sent first']
      const middle = ['p0 without delay', 'x', 'y', 'z', 'p0 delayed, sent first']
      const order = [...high, ...middle, 'p-1 without delay']
      await time.pass(time.ms(9))
      const first = await bench.claim({ max: 4 })
      const rest = await bench.claim({ max: 9 })
      same([...ids(first.items), ...ids(rest.items)], order, 'the order of two claims')
    },
  },
  'ledger: claims never more than asked': {
    law: 'A claim returns at most `max` items of each queue it names; 0 takes nothing.',
    hint: 'whether the limit is applied to each queue, after promotion and reclaim.',
    async run(bench) {
      const batch = Array.from({ length: 5 }, (_, i) => bench.enqueue(`i${i}`))
      await bench.apply('five enqueues', batch)
      await bench.nothingToClaim('with max 0', { max: 0 })
      const nothing = await bench.claim({ queues: [] })
      same([nothing.items.length, nothing.more], [0, false], 'items and `more` of a claim from no queue')
      holds(Number.isFinite(nothing.now), `it carries the time of the backend (${nothing.now})`)
      const counts = []
      for (const max of [2, 1, 2, 1]) counts.push((await bench.claim({ max })).items.length)
      same(counts, [2, 1, 2, 0], 'items claimed with max 2, 1, 2 and 1')
    },
  },
  'ledger: two concurrent claims never share an item': {
    law: 'Each item is leased to exactly one of any set of concurrent claims, of one process or of several.',
    hint: 'whether selecting and leasing are one atomic step.',
    async run(bench) {
      const names = Array.from({ length: 40 }, (_, i) => `i${String(i).padStart(2, '0')}`)
      await bench.enqueueItems(names)
      const ledgers = [bench.ledger, await bench.again()]
      const taken: string[] = []
      for (let round = 0; taken.length < names.length && round < 10; round += 1) {
        const asks = Array.from({ length: 8 }, (_, i) => bench.claim({ max: 3, ledger: ledgers[i % 2]! }))
        taken.push(...(await Promise.all(asks)).flatMap((reply) => ids(reply.items)))
      }
      same(taken.toSorted(), names, 'items over all concurrent claims')
    },
  },
  'ledger: says when there is more': {
    law: '`more` is true when the same claim, made again, would find work, and false when this one came back short.',
    hint: 'whether `more` is computed from what is ready, not from what is stored.',
    async run(bench) {
      const { time } = bench
      same((await bench.claim()).more, false, '`more` of a claim on nothing')
      const batch = ['a', 'b', 'c'].map((id) => bench.enqueue(id))
      await bench.apply('four enqueues', [...batch, bench.enqueue('later', {}, { delayMs: time.ms(9) })])
      same((await bench.claim({ max: 1 })).more, true, '`more` with two ready items left')
      same(
        (await bench.claim({ max: 5 })).more,
        false,
        '`more` with one delayed item left, and a claim that came short',
      )
    },
  },
  'ledger: a claim reports when the next item falls due': {
    law: '`nextDueAt` is the earliest due time of the pending items of the queues asked that are not due yet.',
    hint: 'the lowest due time over delayed and retried items; items of other queues do not count.',
    needs: ['due times', 'exact time'],
    async run(bench) {
      const { time } = bench
      const now = time.clock.now()
      same((await bench.claim()).nextDueAt, undefined, '`nextDueAt` of an empty queue')
      const batch = [7000, 3000, 5000].map((delayMs) => bench.enqueue(`i${delayMs}`, {}, { delayMs }))
      await bench.apply('three enqueues', batch)
      same((await bench.claim()).nextDueAt, now + 3000, '`nextDueAt` with items due in 3, 5 and 7 s')
      await time.pass(2999)
      await bench.nothingToClaim('a millisecond before the first is due')
      await time.pass(1)
      const { items, nextDueAt } = await bench.claim()
      same(ids(items), ['i3000'], 'items claimed exactly at the due time')
      same(nextDueAt, now + 5000, '`nextDueAt` after the first was claimed')
    },
  },
  'ledger: replies carry the time of the backend': {
    law: '`at` is the time of the backend at the claim, from which the engine learns its offset.',
    hint: 'whether `at` is read from the same place as the time that decides leases.',
    async run(bench) {
      const { time } = bench
      const first = (await bench.claim()).now
      if (time.exact) same(first, time.clock.now(), '`at`')
      await time.pass(time.ms(2))
      const moved = (await bench.claim()).now - first
      holds(moved >= time.ms(1.5), `\`at\` moves on with the time that passed (by ${moved} ms)`)
    },
  },
  'ledger: the time of the backend decides, not that of the envelope': {
    law: 'Native enqueues carry a delay: instants in the envelope (queueAt, startAt) decide neither visibility nor order.',
    hint: 'whether a due time is taken from the envelope of a worker whose clock may be wrong.',
    needs: ['native ledger'],
    async run(bench) {
      const { time } = bench
      const now = time.clock.now()
      await bench.apply('enqueues by producers with wrong clocks', [
        bench.enqueue('from the future', { queueAt: now + 9e8, startAt: now + 9e8 }),
        bench.enqueue('from the past', { queueAt: 0, startAt: 0 }, { delayMs: time.ms(4) }),
      ])
      await bench.take(['from the future'])
      await time.pass(time.ms(5))
      await bench.take(['from the past'])
    },
  },
  'ledger: an item is claimed from its own queue only': {
    law: 'Named queues are separate in claim: a claim sees only the queues it names, and serves them in that order.',
    hint: 'whether the queue is part of the ready index.',
    needs: ['named queues'],
    async run(bench) {
      const { queue } = bench
      const other = bench.other()
      await bench.apply('enqueues to two queues in one commit', [
        bench.enqueue('a'),
        bench.enqueue('b', {}, { queue: other }),
        bench.enqueue('c'),
        bench.enqueue('d', { priority: 9 }, { queue: other }),
      ])
      const first = await bench.claim({ queues: [{ queue: other, max: 1 }] })
      same(ids(first.items), ['d'], 'items claimed from the second queue')
      const { items } = await bench.claim({
        queues: [
          { queue, max: 1 },
          { queue: other, max: 5 },
        ],
      })
      same(ids(items), ['a', 'b'], 'items claimed from both queues, the first one with max 1')
      same(
        items.map((claimed) => claimed.lease.queue),
        [queue, other],
        'the queues of the leases',
      )
      await bench.take(['c'])
    },
  },
  'ledger: one settlement may reach several queues': {
    law: 'Queues of one ledger share a commit: a parent in one queue enqueues children in another, and their group is one.',
    hint: 'whether groups and gates are independent of queues.',
    needs: ['named queues'],
    async run(bench) {
      const from = [{ queue: bench.other(), max: 5 }]
      const [parent] = await bench.enqueueAndTake(['parent'], { groupId: 'g' })
      const child = bench.enqueue('child', { groupId: 'g' }, { queue: bench.other() })
      const closed = await bench.apply('the completion of the parent', [complete(parent, undefined, child.effects)])
      same(closed, [], 'groups closed by the parent')
      const [found] = await bench.take(['child'], { queues: from })
      same(
        await bench.apply('the completion of the child', [complete(found)]),
        [{ groupId: 'g' }],
        'groups closed by it',
      )
    },
  },
  'ledger: an item given back goes to its own queue': {
    law: 'A release, a retry and a lapse leave the item in its own queue.',
    hint: 'whether the queue of the lease is remembered.',
    needs: ['named queues'],
    async run(bench) {
      const { time } = bench
      const from = [{ queue: bench.other(), max: 5 }]
      await bench.enqueueItems(['a'], {}, { queue: bench.other() })
      const [first] = await bench.take(['a'], { queues: from })
      await bench.apply('the release', [release(first)])
      await bench.take(['a'], { queues: from, leaseTicks: 2 })
      await time.pass(time.ms(3))
      await bench.nothingToClaim('from the first queue')
      await bench.take(['a'], { queues: from })
    },
  },
})
