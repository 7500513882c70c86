import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { applied, claim, enqueue, finish, ids, item, type LedgerBench, nothingToClaim, release, take } from './bench.js'

export const claimClauses = clausesOn<LedgerBench>()({
  'ledger: claims by priority, then due time, then arrival': {
    law: 'The order of claim is priority descending, due time, arrival.',
    look: 'the order of the ready index; an item promoted when it falls due takes the place of its due time.',
    needs: ['arrival order', 'priority'],
    async run(bench) {
      const { ledger, time } = bench
      const at = async (id: string, priority: number, delayMs = 0) => {
        await applied(ledger, [enqueue(bench, item(bench, id, { priority }), { delayMs })], `the enqueue of ${id}`)
        await time.pass(time.ms(1))
      }
      // What is delayed falls due long after the last is sent, also where time is real and the machine slow.
      await at('p-1 at once', -1)
      await at('p0 delayed, sent first', 0, time.ms(9))
      await at('p0 at once', 0)
      await at('p7 delayed, sent first', 7, time.ms(9))
      await at('p7 at once', 7)
      const batch = ['x', 'y', 'z'].map((id) => enqueue(bench, item(bench, id)))
      // Over plain ports each enqueue of a batch is a row of calls, and one may overtake another.
      if (ledger.atomic) await applied(ledger, batch, 'three enqueues in one batch')
      else for (const one of batch) await applied(ledger, [one], 'three enqueues, one after the other')
      const high = ['p7 at once', 'p7 delayed, sent first']
      const middle = ['p0 at once', 'x', 'y', 'z', 'p0 delayed, sent first']
      const order = [...high, ...middle, 'p-1 at once']
      await time.pass(time.ms(9))
      const first = await claim(bench, { max: 4 })
      const rest = await claim(bench, { max: 9 })
      same([...ids(first.items), ...ids(rest.items)], order, 'the order of two claims')
    },
  },
  'ledger: claims never more than asked': {
    law: 'A claim returns at most `max` items of each queue it names; 0 takes nothing.',
    look: 'whether the limit is applied to each queue, after promotion and reclaim.',
    async run(bench) {
      const { ledger } = bench
      const batch = Array.from({ length: 5 }, (_, i) => enqueue(bench, item(bench, `i${i}`)))
      await applied(ledger, batch, 'five enqueues')
      await nothingToClaim(bench, 'with max 0', { max: 0 })
      const nothing = await claim(bench, { from: [] })
      same([nothing.items.length, nothing.more], [0, false], 'items and `more` of a claim from no queue')
      holds(Number.isFinite(nothing.at), `it tells the time of the backend (${nothing.at})`)
      const counts = []
      for (const max of [2, 1, 2, 1]) counts.push((await claim(bench, { max })).items.length)
      same(counts, [2, 1, 2, 0], 'items claimed with max 2, 1, 2 and 1')
    },
  },
  'ledger: two claimers at once never share an item': {
    law: 'Each item is leased to exactly one of any set of concurrent claims, of one process or of several.',
    look: 'whether selecting and leasing are one atomic step.',
    async run(bench) {
      const names = Array.from({ length: 40 }, (_, i) => `i${String(i).padStart(2, '0')}`)
      await applied(
        bench.ledger,
        names.map((id) => enqueue(bench, item(bench, id))),
        'forty enqueues',
      )
      const ledgers = [bench.ledger, await bench.again()]
      const taken: string[] = []
      for (let round = 0; taken.length < names.length && round < 10; round += 1) {
        const asks = Array.from({ length: 8 }, (_, i) => claim(bench, { max: 3, ledger: ledgers[i % 2]! }))
        taken.push(...(await Promise.all(asks)).flatMap((reply) => ids(reply.items)))
      }
      same(taken.toSorted(), names, 'items over all concurrent claims')
    },
  },
  'ledger: says when there is more': {
    law: '`more` is true when the same claim, made again, would find work, and false when this one came back short.',
    look: 'whether `more` is computed from what is ready, not from what is stored.',
    async run(bench) {
      const { ledger, time } = bench
      same((await claim(bench)).more, false, '`more` of a claim on nothing')
      const batch = ['a', 'b', 'c'].map((id) => enqueue(bench, item(bench, id)))
      await applied(ledger, [...batch, enqueue(bench, item(bench, 'later'), { delayMs: time.ms(9) })], 'four enqueues')
      same((await claim(bench, { max: 1 })).more, true, '`more` with two ready items left')
      same(
        (await claim(bench, { max: 5 })).more,
        false,
        '`more` with one delayed item left, and a claim that came short',
      )
    },
  },
  'ledger: tells when the next item falls due': {
    law: '`nextDueAt` is the earliest due time of the pending items of the queues asked that are not due yet.',
    look: 'the lowest due time over delayed and retried items; items of other queues do not count.',
    needs: ['due times', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const now = time.clock.now()
      same((await claim(bench)).nextDueAt, undefined, '`nextDueAt` of an empty queue')
      const batch = [7000, 3000, 5000].map((delayMs) => enqueue(bench, item(bench, `i${delayMs}`), { delayMs }))
      await applied(ledger, batch, 'three enqueues')
      same((await claim(bench)).nextDueAt, now + 3000, '`nextDueAt` with items due in 3, 5 and 7 s')
      await time.pass(2999)
      await nothingToClaim(bench, 'a millisecond before the first is due')
      await time.pass(1)
      const { items, nextDueAt } = await claim(bench)
      same(ids(items), ['i3000'], 'items claimed exactly at the due time')
      same(nextDueAt, now + 5000, '`nextDueAt` after the first was claimed')
    },
  },
  'ledger: replies carry the time of the backend': {
    law: '`at` is the time of the backend at the claim, so that the engine learns its offset.',
    look: 'whether `at` is read from the same place as the time that decides leases.',
    async run(bench) {
      const { time } = bench
      const first = (await claim(bench)).at
      if (time.exact) same(first, time.clock.now(), '`at`')
      await time.pass(time.ms(2))
      const moved = (await claim(bench)).at - first
      holds(moved >= time.ms(1.5), `\`at\` moves on with the time that passed (by ${moved} ms)`)
    },
  },
  'ledger: the time of the backend decides, not that of the envelope': {
    law: 'Native pushes carry a delay: instants in the envelope (queueAt, startAt) decide neither visibility nor order.',
    look: 'whether a due time is taken from the envelope of a worker whose clock may be wrong.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger, time } = bench
      const now = time.clock.now()
      await applied(
        ledger,
        [
          enqueue(bench, item(bench, 'from the future', { queueAt: now + 9e8, startAt: now + 9e8 })),
          enqueue(bench, item(bench, 'from the past', { queueAt: 0, startAt: 0 }), { delayMs: time.ms(4) }),
        ],
        'enqueues by producers with wrong clocks',
      )
      await take(bench, ['from the future'])
      await time.pass(time.ms(5))
      await take(bench, ['from the past'])
    },
  },
  'ledger: an item is claimed from its own queue only': {
    law: 'Named queues are separate in claim: a claim sees only the queues it names, and serves them in that order.',
    look: 'whether the queue is part of the ready index.',
    needs: ['named queues'],
    async run(bench) {
      const { ledger, queue } = bench
      const other = bench.other()
      await applied(
        ledger,
        [
          enqueue(bench, item(bench, 'a')),
          enqueue(bench, item(bench, 'b'), { queue: other }),
          enqueue(bench, item(bench, 'c')),
          enqueue(bench, item(bench, 'd', { priority: 9 }), { queue: other }),
        ],
        'enqueues to two queues in one commit',
      )
      const first = await claim(bench, { from: [{ queue: other, max: 1 }] })
      same(ids(first.items), ['d'], 'items claimed from the second queue')
      const { items } = await claim(bench, {
        from: [
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
      await take(bench, ['c'])
    },
  },
  'ledger: one settlement may reach several queues': {
    law: 'Queues of one ledger share a commit: a parent of one queue pushes children into another, and their group is one.',
    look: 'whether groups and gates know nothing of queues.',
    needs: ['named queues'],
    async run(bench) {
      const { ledger } = bench
      const from = [{ queue: bench.other(), max: 5 }]
      await applied(ledger, [enqueue(bench, item(bench, 'parent', { groupId: 'g' }))], 'the enqueue')
      const [parent] = await take(bench, ['parent'])
      const child = enqueue(bench, item(bench, 'child', { groupId: 'g' }), { queue: bench.other() })
      const closed = await applied(ledger, [finish(parent, undefined, child.effects)], 'the finish of the parent')
      same(closed, [], 'groups closed by the parent')
      const [found] = await take(bench, ['child'], { from })
      same(await applied(ledger, [finish(found)], 'the finish of the child'), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: an item given back goes to its own queue': {
    law: 'A release, a retry and a lapse leave the item in the queue it was pushed to.',
    look: 'whether the queue of the lease is remembered.',
    needs: ['named queues'],
    async run(bench) {
      const { ledger, time } = bench
      const from = [{ queue: bench.other(), max: 5 }]
      await applied(ledger, [enqueue(bench, item(bench, 'a'), { queue: bench.other() })], 'the enqueue')
      const [first] = await take(bench, ['a'], { from })
      await applied(ledger, [release(first)], 'the release')
      await take(bench, ['a'], { from, leaseTicks: 2 })
      await time.pass(time.ms(3))
      await nothingToClaim(bench, 'from the first queue')
      await take(bench, ['a'], { from })
    },
  },
})
