import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  byLease,
  commitOne,
  complete,
  DAY,
  deadLetter,
  ids,
  kinds,
  type LedgerBench,
  release,
  retry,
  setGroupValue,
} from './bench.js'

export const settleClauses = clausesOn<LedgerBench>()({
  'ledger: a completed item has its result': {
    law: '`complete` ends the item: status completed, its result and its end can be read, and it is never claimed again.',
    hint: 'what complete writes, and whether the item leaves the ready index for good.',
    async run(bench) {
      const { time } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'], {}, { leaseTicks: 2 })
      const dropped = byLease(b.lease, [{ do: 'complete', id: 'b', ending: 'dropped', keepMs: DAY }])
      await bench.apply('a completion and a drop', [complete(a, '{"n":1}'), dropped])
      const first = await bench.view('a')
      same([first.status, first.ending, first.result], ['completed', 'completed', '{"n":1}'], 'status, ending, result')
      if (time.exact) same(first.endAt, time.clock.now(), 'when it ended')
      const second = await bench.view('b')
      same(
        [second.status, second.ending, second.result],
        ['completed', 'dropped', undefined],
        'the same of the dropped item',
      )
      await time.pass(time.ms(3))
      await bench.nothingToClaim('after they ended and their leases would have run out')
    },
  },
  'ledger: a dead-lettered item is dead with its reason': {
    law: '`deadLetter` ends the item: status dead, with ending, class and error; it is never claimed again.',
    hint: 'what deadLetter writes.',
    async run(bench) {
      const { time } = bench
      const [a] = await bench.enqueueAndTake(['a'], {}, { leaseTicks: 2 })
      await bench.apply('the dead-lettering', [deadLetter(a, 'Error: it\'s "broken"\n  at line 1')])
      const { status, ending, class: kind, error, result } = await bench.view('a')
      same([status, ending, kind], ['dead', 'exhausted', 'retryable'], 'status, ending and class')
      same(error, 'Error: it\'s "broken"\n  at line 1', 'its error')
      same(result, undefined, 'its result')
      await time.pass(time.ms(3))
      await bench.nothingToClaim('after it died and its lease would have run out')
    },
  },
  'ledger: a settlement repeated after a lost reply happens once': {
    law: 'A lease settles once: the same commit again answers `repeated`, and no effect happens twice.',
    hint: 'whether the token that settled an item is kept with it (settled_token).',
    async run(bench) {
      const { ledger } = bench
      const [a] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      const settlement = complete(a, '1', [
        { do: 'joinGroup', groupId: 'g', count: 1 },
        bench.enqueueEffect('child', { groupId: 'g' }),
        setGroupValue('g', '"v"'),
      ])
      same(kinds(await ledger.commit([settlement, settlement])), ['applied', 'repeated'], 'twice in one batch')
      const [group] = await ledger.groups(['g'])
      same([group?.open, group?.value], [1, '"v"'], 'open count and value of the group')
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again in its own batch')
      same((await ledger.groups(['g']))[0], group, 'the group after the repetition')
      const [child] = await bench.take(['child'])
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again while the child runs')
      same((await bench.view('child')).status, 'running', 'the status of the child')
      same(
        await bench.apply('the completion of the child', [complete(child)]),
        [{ groupId: 'g', value: '"v"' }],
        'closed by it',
      )
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again after the group closed')
      same(await bench.openCount('g'), 0, 'the open count at the end')
      await bench.nothingToClaim('at the end')
    },
  },
  'ledger: a repeated retry or release answers repeated': {
    law: 'A repeated retry, deferral or release answers `repeated` (or `stale`) and puts nothing back twice.',
    hint: 'whether settled_token is kept also when the item goes back to pending.',
    async run(bench) {
      const { ledger } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'])
      const batch = [retry(a, 0), release(b)]
      await bench.apply('a retry and a release', batch)
      same(kinds(await ledger.commit(batch)), ['repeated', 'repeated'], 'the same again')
      const [again] = await bench.take(['a', 'b'])
      same(again.envelope.attempt, 2, 'the attempt of the retried one')
      for (const kind of kinds(await ledger.commit(batch)))
        holds(
          kind === 'repeated' || kind === 'stale',
          `the same once more, while others hold them, changes nothing (${kind})`,
        )
      await bench.nothingToClaim('while both are held')
    },
  },
  'ledger: a retry comes back later, with its new attempt': {
    law: '`retry` makes the item pending with that attempt number, ready after delayMs, and spends no lapse.',
    hint: 'whether attempt and due time are written, and the lease ended.',
    async run(bench) {
      const { time } = bench
      const [first] = await bench.enqueueAndTake(['a'])
      await bench.apply('the retry', [retry(first, time.ms(4))])
      const waiting = await bench.view('a')
      same([waiting.status, waiting.envelope.attempt], ['pending', 2], 'status and attempt while it waits')
      await time.pass(time.ms(2))
      await bench.nothingToClaim('before the retry is due')
      await time.pass(time.ms(3))
      const [second] = await bench.take(['a'])
      same([second.envelope.attempt, second.lapses, second.crashes], [2, 0, 0], 'attempt, lapses and crashes')
      same(second.envelope.input, first.envelope.input, 'the input')
    },
  },
  'ledger: a deferral keeps the attempt': {
    law: '`retry` with `reason: deferred` comes back with the given attempt, which is the same as before.',
    hint: 'whether the attempt is taken from the effect rather than raised.',
    async run(bench) {
      const { time } = bench
      const [first] = await bench.enqueueAndTake(['a'])
      await bench.apply('the deferral', [retry(first, time.ms(4), 'deferred')])
      await time.pass(time.ms(2))
      await bench.nothingToClaim('before the deferral is due')
      await time.pass(time.ms(3))
      const [second] = await bench.take(['a'])
      same(second.envelope.attempt, 1, 'the attempt')
    },
  },
  'ledger: a release without a delay keeps its place': {
    law: 'Without a delay a released item keeps its due time and hence its place; with one it gets a new due time.',
    hint: 'whether release writes a due time when it was given none.',
    needs: ['arrival order'],
    async run(bench) {
      const { time } = bench
      for (const id of ['a', 'b', 'c', 'd']) {
        await bench.apply(`the enqueue of ${id}`, [bench.enqueue(id)])
        await time.pass(time.ms(0.1))
      }
      const { items } = await bench.claim({ max: 2 })
      same(ids(items), ['a', 'b'], 'the first two')
      await bench.apply('a release with a delay and one without', [release(items[0]!, time.ms(2)), release(items[1]!)])
      same(ids((await bench.claim({ max: 2 })).items), ['b', 'c'], 'the next two: b has its old place')
      await time.pass(time.ms(3))
      same(ids((await bench.claim({ max: 2 })).items), ['d', 'a'], 'the last two: a has a new place')
    },
  },
  'ledger: a release with a delay hides the item until then': {
    law: 'A release with a delay makes the item claimable after it, and not before.',
    hint: 'whether the delay of a release is honoured.',
    async run(bench) {
      const { time } = bench
      const [a] = await bench.enqueueAndTake(['a'])
      await bench.apply('the release', [release(a, time.ms(4))])
      await time.pass(time.ms(2))
      await bench.nothingToClaim('before the delay has passed')
      await time.pass(time.ms(3))
      await bench.take(['a'])
    },
  },
  'ledger: an ended item is removed after its retention': {
    law: 'A completed or dead item is kept for keepMs and then really removed: it reads undefined.',
    hint: 'whether expiry is written with the end, and whether reads respect it.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const [a, b, c] = await bench.enqueueAndTake(['a', 'b', 'c'])
      const batch = [
        complete(a, '1', [], time.ms(10)),
        deadLetter(b, 'Error: x', [], time.ms(20)),
        complete(c, '3', [], time.ms(20)),
      ]
      await bench.apply('the ends', batch)
      const statuses = async () => (await ledger.read(['a', 'b', 'c'])).map((found) => found?.status)
      await time.pass(time.ms(9))
      same(await statuses(), ['completed', 'dead', 'completed'], 'statuses before anything expires')
      await time.pass(time.ms(2))
      same(await statuses(), [undefined, 'dead', 'completed'], 'statuses after the first expired')
      await time.pass(time.ms(10))
      same(await statuses(), [undefined, undefined, undefined], 'statuses after the others expired')
    },
  },
  'ledger: the id of a removed item can be used again': {
    law: 'Once an ended item has been removed, its id may be enqueued again, as a new item.',
    hint: 'whether anything that outlives the item still answers `repeated`.',
    needs: ['native ledger', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const [a] = await bench.enqueueAndTake(['a'])
      await bench.apply('the end', [complete(a, '1', [], time.ms(10))])
      await time.pass(time.ms(11))
      same((await commitOne(ledger, bench.enqueue('a'))).kind, 'applied', 'an enqueue of the same id')
      const [again] = await bench.take(['a'])
      same(
        [again.envelope.attempt, again.lapses, again.crashes],
        [1, 0, 0],
        'attempt, lapses and crashes of the new item',
      )
      same((await commitOne(ledger, complete(a, '1'))).kind, 'stale', 'the end of the old one, repeated')
    },
  },
  'ledger: children are there when their parent has ended': {
    law: 'The enqueues of a settlement happen with it: after the commit the items are claimable, and read as pending.',
    hint: 'whether enqueues are part of the same step.',
    async run(bench) {
      const { ledger } = bench
      const [p] = await bench.enqueueAndTake(['p'], { groupId: 'g' })
      const children = ['c1', 'c2', 'c3'].map((id) => bench.enqueueEffect(id, { groupId: 'g', parent: 'p' }))
      const closed = await bench.apply('the completion of the parent', [
        complete(p, undefined, [{ do: 'joinGroup', groupId: 'g', count: 3 }, ...children]),
      ])
      same(closed, [], 'the groups closed by the parent')
      same(
        (await ledger.read(['c1', 'c2', 'c3'])).map((found) => found?.status),
        ['pending', 'pending', 'pending'],
        'the statuses of the children',
      )
      const taken = await bench.take(['c1', 'c2', 'c3'])
      same(
        await bench.apply(
          'the completions',
          taken.map((claimed) => complete(claimed)),
        ),
        [{ groupId: 'g' }],
        'closed by them',
      )
    },
  },
  'ledger: a body that is not an envelope is reported and removed': {
    law: 'A claim that meets a foreign body reports it as unreadable, removes it, and delivers the rest.',
    hint: 'how a claim reads bodies that another program pushed through the plain queue.',
    needs: ['foreign bodies'],
    async run(bench) {
      const { time } = bench
      const bad = ['not json', '{"id":"x"}', '[]', 'null', '{"id":1,"type":"t","groupId":"g","input":"null"}']
      for (const body of bad) await bench.pushRaw(body)
      await bench.enqueueItems(['a'])
      const seen: string[] = []
      const claimed: string[] = []
      for (let round = 0; round < 4; round += 1) {
        const reply = await bench.claim({ leaseTicks: 2 })
        claimed.push(...ids(reply.items))
        seen.push(...(reply.unreadable ?? []).map(({ body }) => body))
        await bench.apply(
          'the completion',
          reply.items.map((one) => complete(one)),
        )
        await time.pass(time.ms(3))
      }
      same(claimed, ['a'], 'the items claimed')
      same(seen.toSorted(), bad.toSorted(), 'the bodies reported as unreadable, each once')
    },
  },
  'ledger: a hand-written envelope runs': {
    law: 'A body pushed through the plain queue that has id, type, groupId and input is claimed and can be settled.',
    hint: 'how a claim adopts a body that no enqueue has recorded.',
    needs: ['foreign bodies'],
    async run(bench) {
      await bench.pushRaw(JSON.stringify({ ...bench.item('hand', { groupId: 'g' }), startAt: 0, 'x-mine': 7 }))
      const [hand] = await bench.take(['hand'])
      same(hand.envelope['x-mine'], 7, 'an unknown field of it')
      await bench.apply('the completion', [complete(hand, '42')])
      const { status, result } = await bench.view('hand')
      same({ status, result }, { status: 'completed', result: '42' }, 'its view')
      await bench.nothingToClaim('after it ended')
    },
  },
})
