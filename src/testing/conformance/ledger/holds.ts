import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { byLease, complete, control, ids, type LedgerBench, notifyGate, release, retry } from './bench.js'

/** Claims until all the items named have come, letting time pass between: some ledgers free paused items in steps. */
async function eventuallyTake(bench: LedgerBench, names: readonly string[]): Promise<void> {
  const seen: string[] = []
  for (let round = 0; seen.length < names.length && round < 40; round += 1) {
    seen.push(...ids((await bench.claim({ leaseTicks: 10_000 })).items))
    await bench.time.pass(bench.time.ms(round < 10 ? 1 : 10))
  }
  same(seen.toSorted(), [...names].toSorted(), 'the items claimed after the resume')
}

export const holdClauses = clausesOn<LedgerBench>()({
  'ledger: a paused queue hands out nothing until it is resumed': {
    law: '`pause` of a queue stops its claims, in every process, for what is there and what comes; `resume` ends that.',
    hint: 'whether a claim reads what is paused, and whether items enqueued meanwhile are held too.',
    async run(bench) {
      const other = await bench.again()
      await bench.enqueueItems(['before'])
      await bench.apply('the pause', [control('pause', 'queue', bench.queue)])
      await bench.nothingToClaim('from the paused queue')
      await bench.apply('an enqueue while it is paused', [bench.enqueue('after')], other)
      await bench.nothingToClaim('from the paused queue, by another process', { ledger: other })
      await bench.apply('the resume, by another process', [control('resume', 'queue', bench.queue)], other)
      await eventuallyTake(bench, ['before', 'after'])
    },
  },
  'ledger: lists what is paused': {
    law: '`paused` names the queues and types that are paused now, at least among those it is given.',
    hint: 'whether every process sees pauses and resumes.',
    async run(bench) {
      const { ledger, queue } = bench
      const other = await bench.again()
      if (ledger.paused === undefined || other.paused === undefined) throw new TypeError('the ledger has no `paused`')
      const among = { queues: [queue], types: ['slow', 'quick'] }
      same(await ledger.paused(among), { queues: [], types: [] }, 'what is paused at first')
      await bench.apply('two pauses', [control('pause', 'queue', queue), control('pause', 'type', 'slow')])
      same(await other.paused(among), { queues: [queue], types: ['slow'] }, 'what is paused, read by another process')
      await bench.apply('a resume', [control('resume', 'queue', queue)], other)
      same(await ledger.paused(among), { queues: [], types: ['slow'] }, 'what is left')
      await bench.apply('the other resume', [control('resume', 'type', 'slow')], other)
    },
  },
  'ledger: a paused type is passed over': {
    law: '`pause` of a type holds its items; items of other types in the same queue are claimed meanwhile.',
    hint: 'whether a claim continues behind paused items.',
    async run(bench) {
      const slow = ['s1', 's2', 's3', 's4'].map((id) => bench.enqueue(id, { type: 'slow', priority: 5 }))
      await bench.apply('the pause and four enqueues of that type', [control('pause', 'type', 'slow'), ...slow])
      await bench.enqueueItems(['quick'], { type: 'quick' })
      const seen: string[] = []
      for (let round = 0; round < 6; round += 1) {
        const { items } = await bench.claim({ max: 2 })
        seen.push(...ids(items))
        await bench.apply(
          'the ends',
          items.map((claimed) => complete(claimed)),
        )
      }
      same(seen, ['quick'], 'items claimed, two at a time, with four paused ones in front')
      await bench.apply('the resume', [control('resume', 'type', 'slow')])
      await eventuallyTake(bench, ['s1', 's2', 's3', 's4'])
    },
  },
  'ledger: resumed items are ready immediately, in their old order': {
    law: 'Paused items keep their place: after the resume they are claimable immediately, by priority, due time and arrival.',
    hint: 'whether a hold keeps the due time, and whether resume returns items to the ready index.',
    needs: ['holds', 'arrival order'],
    async run(bench) {
      const { time } = bench
      for (const [id, type] of Object.entries({ a: 'p', b: 'q', c: 'p', d: 'q', e: 'p' })) {
        await bench.apply(`the enqueue of ${id}`, [bench.enqueue(id, { type })])
        await time.pass(time.ms(0.1))
      }
      await bench.apply('the pause', [control('pause', 'type', 'p')])
      same(ids((await bench.claim({ max: 1 })).items), ['b'], 'claimed while p is paused')
      await bench.apply('the resume', [control('resume', 'type', 'p')])
      same(
        ids((await bench.claim({ max: 9 })).items),
        ['a', 'c', 'd', 'e'],
        'claimed immediately after the resume, in order',
      )
    },
  },
  'ledger: a pause spends nothing': {
    law: 'Items held by a pause spend no attempt, lapse or crash.',
    hint: 'how a claim returns items that it must not take.',
    needs: ['holds'],
    async run(bench) {
      const { time } = bench
      await bench.apply('a pause and an enqueue', [control('pause', 'queue', bench.queue), bench.enqueue('a')])
      for (let round = 0; round < 3; round += 1) {
        await bench.nothingToClaim('while the queue is paused')
        await time.pass(time.ms(40))
      }
      await bench.apply('the resume', [control('resume', 'queue', bench.queue)])
      const [a] = await bench.take(['a'])
      same([a.envelope.attempt, a.lapses, a.crashes], [1, 0, 0], 'attempt, lapses and crashes')
    },
  },
  'ledger: retries, gates and delays wait for the resume too': {
    law: 'Whatever becomes ready while its queue or type is paused is held until the resume.',
    hint: 'every way into the ready index: retry, release, promotion, a freed gate, a lapse.',
    needs: ['holds'],
    async run(bench) {
      const { time } = bench
      const all = ['retried', 'released', 'member', 'lapsed'].map((id) => bench.enqueue(id))
      await bench.apply('the enqueues', [...all, bench.gated('gate', ['member'])])
      await bench.enqueueItems(['delayed'], {}, { delayMs: time.ms(2) })
      const [retried, released, member] = await bench.take(['retried', 'released', 'member', 'lapsed'], {
        leaseTicks: 5,
      })
      await bench.apply('the pause', [control('pause', 'queue', bench.queue)])
      await bench.apply('ends', [
        retry(retried, time.ms(1)),
        release(released),
        complete(member, '1', [notifyGate('gate', 'member')]),
      ])
      for (let round = 0; round < 3; round += 1) {
        await time.pass(time.ms(3))
        await bench.nothingToClaim('while the queue is paused')
      }
      await bench.apply('the resume', [control('resume', 'queue', bench.queue)])
      const [gate] = await bench.take(['gate', 'retried', 'released', 'lapsed', 'delayed'])
      same(gate.gate, { met: true }, 'what the gate decided during the pause')
    },
  },
  'ledger: a pause of the queue and one of the type are two': {
    law: 'An item is held while its queue or its type is paused; pausing twice needs one resume.',
    hint: 'whether resuming one frees what the other still holds.',
    needs: ['holds'],
    async run(bench) {
      await bench.enqueueItems(['a'], { type: 'p' })
      const pauses = [
        control('pause', 'queue', bench.queue),
        control('pause', 'type', 'p'),
        control('pause', 'type', 'p'),
      ]
      await bench.apply('a pause of the queue and two of the type', pauses)
      await bench.nothingToClaim('with both paused')
      await bench.apply('the resume of the queue', [control('resume', 'queue', bench.queue)])
      await bench.nothingToClaim('with the type still paused')
      await bench.apply('the resume of the type', [
        control('resume', 'type', 'p'),
        control('resume', 'type', 'never paused'),
      ])
      await bench.take(['a'])
    },
  },
  'ledger: a pause of one queue does not affect the others': {
    law: 'Pausing a queue holds that queue only.',
    hint: 'whether the name of the queue is compared.',
    needs: ['named queues'],
    async run(bench) {
      const other = bench.other()
      const both = [bench.enqueue('a'), bench.enqueue('b', {}, { queue: other })]
      await bench.apply('two enqueues and a pause of the second queue', [...both, control('pause', 'queue', other)])
      const from = [
        { queue: other, max: 5 },
        { queue: bench.queue, max: 5 },
      ]
      await bench.take(['a'], { queues: from })
    },
  },
  'ledger: a running item can complete while its queue is paused': {
    law: 'A pause stops claims, not runs: leases are extended and settled as usual.',
    hint: 'whether guards depend on pauses.',
    async run(bench) {
      const [a] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      await bench.apply('two pauses', [control('pause', 'queue', bench.queue), control('pause', 'type', 't')])
      same(await bench.apply('the end', [complete(a)]), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: an item released into a hold waits there until its due time': {
    law: 'A release with a hold and a delay takes the item out of the ready index; at its due time it is ready again.',
    hint: 'whether a hold of a release is kept, and whether the due time ends it.',
    needs: ['holds'],
    async run(bench) {
      const { ledger, time } = bench
      const [a] = await bench.enqueueAndTake(['a'])
      const hold = { by: 'limit', key: 'tenant-1' } as const
      await bench.apply('the release', [byLease(a.lease, [{ do: 'release', id: 'a', delayMs: time.ms(4), hold }])])
      same((await ledger.read(['a']))[0]?.hold, hold, 'the hold in its view')
      await time.pass(time.ms(2))
      await bench.nothingToClaim('before its due time')
      await time.pass(time.ms(3))
      const [again] = await bench.take(['a'])
      same([again.lapses, again.crashes, again.gate], [0, 0, undefined], 'lapses, crashes and verdict')
      holds((await ledger.read(['a']))[0]?.hold === undefined, 'the hold is gone while it runs')
    },
  },
})
