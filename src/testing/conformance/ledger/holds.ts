import type { Settlement } from '../../../ports/settlement.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  claim,
  enqueue,
  finish,
  gated,
  ids,
  item,
  type LedgerBench,
  nothingToClaim,
  release,
  retry,
  take,
  tell,
} from './bench.js'

const order = (what: 'pause' | 'resume', of: 'queue' | 'type', name: string): Settlement => ({
  guard: { by: 'none' },
  effects: [{ do: what, what: of, name }],
})

/** Claims until all the items named have come, letting time pass between: some ledgers free paused items in steps. */
async function eventuallyTake(bench: LedgerBench, names: readonly string[]): Promise<void> {
  const seen: string[] = []
  for (let round = 0; seen.length < names.length && round < 40; round += 1) {
    seen.push(...ids((await claim(bench, { leaseTicks: 10_000 })).items))
    await bench.time.pass(bench.time.ms(round < 10 ? 1 : 10))
  }
  same(seen.toSorted(), [...names].toSorted(), 'the items claimed after the resume')
}

export const holdClauses = clausesOn<LedgerBench>()({
  'ledger: a paused queue hands out nothing until it is resumed': {
    law: '`pause` of a queue stops its claims, in every process, for what is there and what comes; `resume` ends that.',
    look: 'whether a claim reads what is paused, and whether items enqueued meanwhile are held too.',
    async run(bench) {
      const { ledger } = bench
      const other = await bench.again()
      await applied(ledger, [enqueue(bench, item(bench, 'before'))], 'an enqueue')
      await applied(ledger, [order('pause', 'queue', bench.queue)], 'the pause')
      await nothingToClaim(bench, 'from the paused queue')
      await applied(other, [enqueue(bench, item(bench, 'after'))], 'an enqueue while it is paused')
      await nothingToClaim(bench, 'from the paused queue, by another process', { ledger: other })
      await applied(other, [order('resume', 'queue', bench.queue)], 'the resume, by another process')
      await eventuallyTake(bench, ['before', 'after'])
    },
  },
  'ledger: tells what is paused': {
    law: '`paused` names the queues and types that are paused now, at least among those that it is asked about.',
    look: 'whether pause and resume change what is told, in every process.',
    async run(bench) {
      const { ledger, queue } = bench
      const other = await bench.again()
      if (ledger.paused === undefined || other.paused === undefined) throw new TypeError('the ledger has no `paused`')
      const among = { queues: [queue], types: ['slow', 'quick'] }
      same(await ledger.paused(among), { queues: [], types: [] }, 'what is paused at first')
      await applied(ledger, [order('pause', 'queue', queue), order('pause', 'type', 'slow')], 'two pauses')
      same(await other.paused(among), { queues: [queue], types: ['slow'] }, 'what is paused, told by another process')
      await applied(other, [order('resume', 'queue', queue)], 'a resume')
      same(await ledger.paused(among), { queues: [], types: ['slow'] }, 'what is left')
      await applied(other, [order('resume', 'type', 'slow')], 'the other resume')
    },
  },
  'ledger: a paused type is passed over': {
    law: '`pause` of a type holds its items; items of other types in the same queue are claimed meanwhile.',
    look: 'whether a claim that meets paused items goes on behind them.',
    async run(bench) {
      const { ledger } = bench
      const slow = ['s1', 's2', 's3', 's4'].map((id) => enqueue(bench, item(bench, id, { type: 'slow', priority: 5 })))
      await applied(ledger, [order('pause', 'type', 'slow'), ...slow], 'the pause and four enqueues of that type')
      await applied(ledger, [enqueue(bench, item(bench, 'quick', { type: 'quick' }))], 'one of another type')
      const seen: string[] = []
      for (let round = 0; round < 6; round += 1) {
        const { items } = await claim(bench, { max: 2 })
        seen.push(...ids(items))
        await applied(
          ledger,
          items.map((claimed) => finish(claimed)),
          'the ends',
        )
      }
      same(seen, ['quick'], 'items claimed, two at a time, with four paused ones in front')
      await applied(ledger, [order('resume', 'type', 'slow')], 'the resume')
      await eventuallyTake(bench, ['s1', 's2', 's3', 's4'])
    },
  },
  'ledger: resumed items are ready at once, in their old order': {
    law: 'Paused items keep their place: after the resume they are claimable at once, by priority, due time and arrival.',
    look: 'whether a hold keeps the due time, and whether resume returns items to the ready index.',
    needs: ['holds', 'arrival order'],
    async run(bench) {
      const { ledger, time } = bench
      for (const [id, type] of Object.entries({ a: 'p', b: 'q', c: 'p', d: 'q', e: 'p' })) {
        await applied(ledger, [enqueue(bench, item(bench, id, { type }))], `the enqueue of ${id}`)
        await time.pass(time.ms(0.1))
      }
      await applied(ledger, [order('pause', 'type', 'p')], 'the pause')
      same(ids((await claim(bench, { max: 1 })).items), ['b'], 'claimed while p is paused')
      await applied(ledger, [order('resume', 'type', 'p')], 'the resume')
      same(
        ids((await claim(bench, { max: 9 })).items),
        ['a', 'c', 'd', 'e'],
        'claimed at once after the resume, in order',
      )
    },
  },
  'ledger: a pause spends nothing': {
    law: 'Items held by a pause spend no attempt, lapse or crash.',
    look: 'how a claim gives back what it met.',
    needs: ['holds'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(
        ledger,
        [order('pause', 'queue', bench.queue), enqueue(bench, item(bench, 'a'))],
        'a pause and an enqueue',
      )
      for (let round = 0; round < 3; round += 1) {
        await nothingToClaim(bench, 'while the queue is paused')
        await time.pass(time.ms(40))
      }
      await applied(ledger, [order('resume', 'queue', bench.queue)], 'the resume')
      const [a] = await take(bench, ['a'])
      same([a.envelope.attempt, a.lapses, a.crashes], [1, 0, 0], 'attempt, lapses and crashes')
    },
  },
  'ledger: retries, gates and delays wait for the resume too': {
    law: 'Whatever becomes ready while its queue or type is paused is held until the resume.',
    look: 'every way into the ready index: retry, release, promotion, a freed gate, a lapse.',
    needs: ['holds'],
    async run(bench) {
      const { ledger, time } = bench
      const all = ['retried', 'released', 'member', 'lapsed'].map((id) => enqueue(bench, item(bench, id)))
      await applied(ledger, [...all, gated(bench, 'gate', ['member'])], 'the enqueues')
      await applied(ledger, [enqueue(bench, item(bench, 'delayed'), { delayMs: time.ms(2) })], 'a delayed one')
      const [retried, released, member] = await take(bench, ['retried', 'released', 'member', 'lapsed'], {
        leaseTicks: 5,
      })
      await applied(ledger, [order('pause', 'queue', bench.queue)], 'the pause')
      await applied(
        ledger,
        [retry(retried, time.ms(1)), release(released), finish(member, '1', [tell('gate', 'member')])],
        'ends',
      )
      for (let round = 0; round < 3; round += 1) {
        await time.pass(time.ms(3))
        await nothingToClaim(bench, 'while the queue is paused')
      }
      await applied(ledger, [order('resume', 'queue', bench.queue)], 'the resume')
      const [gate] = await take(bench, ['gate', 'retried', 'released', 'lapsed', 'delayed'])
      same(gate.gate, { met: true }, 'what the gate decided during the pause')
    },
  },
  'ledger: a pause of the queue and one of the type are two': {
    law: 'An item is held while its queue or its type is paused; pausing twice needs one resume.',
    look: 'whether resuming one frees what the other still holds.',
    needs: ['holds'],
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { type: 'p' }))], 'the enqueue')
      const pauses = [order('pause', 'queue', bench.queue), order('pause', 'type', 'p'), order('pause', 'type', 'p')]
      await applied(ledger, pauses, 'a pause of the queue and two of the type')
      await nothingToClaim(bench, 'with both paused')
      await applied(ledger, [order('resume', 'queue', bench.queue)], 'the resume of the queue')
      await nothingToClaim(bench, 'with the type still paused')
      await applied(
        ledger,
        [order('resume', 'type', 'p'), order('resume', 'type', 'never paused')],
        'the resume of the type',
      )
      await take(bench, ['a'])
    },
  },
  'ledger: a pause of one queue leaves the others alone': {
    law: 'Pausing a queue holds that queue only.',
    look: 'whether the name of the queue is compared.',
    needs: ['named queues'],
    async run(bench) {
      const { ledger } = bench
      const other = bench.other()
      const both = [enqueue(bench, item(bench, 'a')), enqueue(bench, item(bench, 'b'), { queue: other })]
      await applied(ledger, [...both, order('pause', 'queue', other)], 'two enqueues and a pause of the second queue')
      const from = [
        { queue: other, max: 5 },
        { queue: bench.queue, max: 5 },
      ]
      await take(bench, ['a'], { from })
    },
  },
  'ledger: a running item finishes while its queue is paused': {
    law: 'A pause stops claims, not runs: held leases are extended and settled as ever.',
    look: 'whether guards look at what is paused.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      await applied(ledger, [order('pause', 'queue', bench.queue), order('pause', 'type', 't')], 'two pauses')
      same(await applied(ledger, [finish(a)], 'the end'), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: an item released into a hold waits there until its due time': {
    law: 'A release with a hold and a delay takes the item out of the ready index; at its due time it is ready again.',
    look: 'whether a hold of a release is kept, and whether the due time ends it.',
    needs: ['holds'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      const hold = { by: 'limit', key: 'tenant-1' } as const
      await applied(ledger, [byLease(a.lease, [{ do: 'release', id: 'a', delayMs: time.ms(4), hold }])], 'the release')
      same((await ledger.read(['a']))[0]?.hold, hold, 'the hold in its view')
      await time.pass(time.ms(2))
      await nothingToClaim(bench, 'before its due time')
      await time.pass(time.ms(3))
      const [again] = await take(bench, ['a'])
      same([again.lapses, again.crashes, again.gate], [0, 0, undefined], 'lapses, crashes and verdict')
      holds((await ledger.read(['a']))[0]?.hold === undefined, 'the hold is gone while it runs')
    },
  },
})
