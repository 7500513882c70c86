import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  claim,
  commitOne,
  DAY,
  enqueue,
  finish,
  ids,
  item,
  kinds,
  type LedgerBench,
  nothingToClaim,
  openCount,
  park,
  push,
  release,
  retry,
  take,
  view,
} from './bench.js'

export const settleClauses = clausesOn<LedgerBench>()({
  'ledger: a finished item is a success with its result': {
    law: '`finish` ends the item: status success, its result and its end can be read, and it is never claimed again.',
    look: 'what finish writes, and whether the item leaves the ready index for good.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a')), enqueue(bench, item(bench, 'b'))], 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'], { leaseTicks: 2 })
      const dropped = byLease(b.lease, [{ do: 'finish', id: 'b', ending: 'dropped', keepMs: DAY }])
      await applied(ledger, [finish(a, '{"n":1}'), dropped], 'a finish and a drop')
      const first = await view(bench, 'a')
      same([first.status, first.ending, first.result], ['success', 'done', '{"n":1}'], 'status, ending, result')
      if (time.exact) same(first.endAt, time.clock.now(), 'when it ended')
      const second = await view(bench, 'b')
      same(
        [second.status, second.ending, second.result],
        ['success', 'dropped', undefined],
        'the same of the dropped one',
      )
      await time.pass(time.ms(3))
      await nothingToClaim(bench, 'after they ended and their leases would have run out')
    },
  },
  'ledger: a parked item is dead with its reason': {
    law: '`park` ends the item: status dead, with ending, class and error; it is never claimed again.',
    look: 'what park writes.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'], { leaseTicks: 2 })
      await applied(ledger, [park(a, 'Error: it\'s "broken"\n  at line 1')], 'the park')
      const { status, ending, class: kind, error, result } = await view(bench, 'a')
      same([status, ending, kind], ['dead', 'exhausted', 'retryable'], 'status, ending and class')
      same(error, 'Error: it\'s "broken"\n  at line 1', 'its error')
      same(result, undefined, 'its result')
      await time.pass(time.ms(3))
      await nothingToClaim(bench, 'after it was parked and its lease would have run out')
    },
  },
  'ledger: a settlement repeated after a lost reply happens once': {
    law: 'A lease settles once: the same commit again answers `repeated`, and no effect happens twice.',
    look: 'whether the token that settled an item is kept with it (settled_by).',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      const settlement = finish(a, '1', [
        { do: 'openGroup', groupId: 'g', by: 1 },
        push(bench, item(bench, 'child', { groupId: 'g' })),
        { do: 'contribute', groupId: 'g', value: '"v"', final: false },
      ])
      same(kinds(await ledger.commit([settlement, settlement])), ['applied', 'repeated'], 'twice in one batch')
      const [group] = await ledger.groups(['g'])
      same([group?.open, group?.value], [1, '"v"'], 'open count and value of the group')
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again in a batch of its own')
      same((await ledger.groups(['g']))[0], group, 'the group after the repetition')
      const [child] = await take(bench, ['child'])
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again while the child runs')
      same((await view(bench, 'child')).status, 'running', 'the status of the child')
      same(
        await applied(ledger, [finish(child)], 'the finish of the child'),
        [{ groupId: 'g', value: '"v"' }],
        'closed by it',
      )
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again after the group closed')
      same(await openCount(bench, 'g'), 0, 'the open count at the end')
      await nothingToClaim(bench, 'at the end')
    },
  },
  'ledger: a repeated retry or release is told so': {
    law: 'A repeated retry, deferral or release answers `repeated` (or `stale`) and puts nothing back twice.',
    look: 'whether settled_by is kept also when the item goes back to pending.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a')), enqueue(bench, item(bench, 'b'))], 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'])
      const batch = [retry(a, 0), release(b)]
      await applied(ledger, batch, 'a retry and a release')
      same(kinds(await ledger.commit(batch)), ['repeated', 'repeated'], 'the same again')
      const [again] = await take(bench, ['a', 'b'])
      same(again.envelope.attempt, 2, 'the attempt of the retried one')
      for (const kind of kinds(await ledger.commit(batch)))
        holds(
          kind === 'repeated' || kind === 'stale',
          `the same once more, while others hold them, changes nothing (${kind})`,
        )
      await nothingToClaim(bench, 'while both are held')
    },
  },
  'ledger: a retry comes back later, with its new attempt': {
    law: '`retryAt` makes the item pending with that attempt number, ready after delayMs, and spends no lapse.',
    look: 'whether attempt and due time are written, and the lease ended.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [first] = await take(bench, ['a'])
      await applied(ledger, [retry(first, time.ms(4))], 'the retry')
      const waiting = await view(bench, 'a')
      same([waiting.status, waiting.envelope.attempt], ['pending', 2], 'status and attempt while it waits')
      await time.pass(time.ms(2))
      await nothingToClaim(bench, 'before the retry is due')
      await time.pass(time.ms(3))
      const [second] = await take(bench, ['a'])
      same([second.envelope.attempt, second.lapses, second.crashes], [2, 0, 0], 'attempt, lapses and crashes')
      same(second.envelope.input, first.envelope.input, 'the input')
    },
  },
  'ledger: a deferral keeps the attempt': {
    law: '`retryAt` with `why: deferred` comes back with the attempt it is given, which is the same as before.',
    look: 'whether the attempt is taken from the effect rather than raised.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [first] = await take(bench, ['a'])
      await applied(ledger, [retry(first, time.ms(4), 'deferred')], 'the deferral')
      await time.pass(time.ms(2))
      await nothingToClaim(bench, 'before the deferral is due')
      await time.pass(time.ms(3))
      const [second] = await take(bench, ['a'])
      same(second.envelope.attempt, 1, 'the attempt')
    },
  },
  'ledger: a release without a delay keeps its place': {
    law: 'Without a delay a released item keeps its due time and hence its place; with one it gets a new due time.',
    look: 'whether release writes a due time when it was given none.',
    needs: ['arrival order'],
    async run(bench) {
      const { ledger, time } = bench
      for (const id of ['a', 'b', 'c', 'd']) {
        await applied(ledger, [enqueue(bench, item(bench, id))], `the enqueue of ${id}`)
        await time.pass(time.ms(0.1))
      }
      const { items } = await claim(bench, { max: 2 })
      same(ids(items), ['a', 'b'], 'the first two')
      await applied(
        ledger,
        [release(items[0]!, time.ms(2)), release(items[1]!)],
        'a release with a delay and one without',
      )
      same(ids((await claim(bench, { max: 2 })).items), ['b', 'c'], 'the next two: b has its old place')
      await time.pass(time.ms(3))
      same(ids((await claim(bench, { max: 2 })).items), ['d', 'a'], 'the last two: a has a new place')
    },
  },
  'ledger: a release with a delay hides the item until then': {
    law: 'A release with a delay makes the item claimable when it is over, and not before.',
    look: 'whether the delay of a release is honoured.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      await applied(ledger, [release(a, time.ms(4))], 'the release')
      await time.pass(time.ms(2))
      await nothingToClaim(bench, 'before the delay is over')
      await time.pass(time.ms(3))
      await take(bench, ['a'])
    },
  },
  'ledger: what has ended is removed after its time': {
    law: 'A finished or parked item is kept for keepMs and then really removed: it reads undefined.',
    look: 'whether expiry is written with the end, and whether reads respect it.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const both = ['a', 'b', 'c'].map((id) => enqueue(bench, item(bench, id)))
      await applied(ledger, both, 'three enqueues')
      const [a, b, c] = await take(bench, ['a', 'b', 'c'])
      const batch = [
        finish(a, '1', [], time.ms(10)),
        park(b, 'Error: x', [], time.ms(20)),
        finish(c, '3', [], time.ms(20)),
      ]
      await applied(ledger, batch, 'the ends')
      const statuses = async () => (await ledger.read(['a', 'b', 'c'])).map((found) => found?.status)
      await time.pass(time.ms(9))
      same(await statuses(), ['success', 'dead', 'success'], 'statuses before anything expires')
      await time.pass(time.ms(2))
      same(await statuses(), [undefined, 'dead', 'success'], 'statuses after the first expired')
      await time.pass(time.ms(10))
      same(await statuses(), [undefined, undefined, undefined], 'statuses after the others expired')
    },
  },
  'ledger: the id of what was removed is free': {
    law: 'Once an ended item has been removed, its id may be enqueued again, as a new item.',
    look: 'whether anything that outlives the item still answers `repeated`.',
    needs: ['native ledger', 'exact time'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      await applied(ledger, [finish(a, '1', [], time.ms(10))], 'the end')
      await time.pass(time.ms(11))
      same((await commitOne(ledger, enqueue(bench, item(bench, 'a')))).kind, 'applied', 'an enqueue of the same id')
      const [again] = await take(bench, ['a'])
      same(
        [again.envelope.attempt, again.lapses, again.crashes],
        [1, 0, 0],
        'attempt, lapses and crashes of the new item',
      )
      same((await commitOne(ledger, finish(a, '1'))).kind, 'stale', 'the end of the old one, repeated')
    },
  },
  'ledger: children are there when their parent has ended': {
    law: 'The pushes of a settlement happen with it: after the commit they are claimable, and known as pending.',
    look: 'whether pushes are part of the same step.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'p', { groupId: 'g' }))], 'the enqueue')
      const [p] = await take(bench, ['p'])
      const children = ['c1', 'c2', 'c3'].map((id) => push(bench, item(bench, id, { groupId: 'g', parent: 'p' })))
      const closed = await applied(
        ledger,
        [finish(p, undefined, [{ do: 'openGroup', groupId: 'g', by: 3 }, ...children])],
        'the finish of the parent',
      )
      same(closed, [], 'the groups closed by the parent')
      same(
        (await ledger.read(['c1', 'c2', 'c3'])).map((found) => found?.status),
        ['pending', 'pending', 'pending'],
        'the statuses of the children',
      )
      const taken = await take(bench, ['c1', 'c2', 'c3'])
      same(
        await applied(
          ledger,
          taken.map((claimed) => finish(claimed)),
          'the finishes',
        ),
        [{ groupId: 'g' }],
        'closed by them',
      )
    },
  },
  'ledger: a body that is not an envelope is reported and removed': {
    law: 'A claim that meets a foreign body reports it as unreadable, removes it, and delivers the rest.',
    look: 'how a claim reads bodies that another program pushed through the plain queue.',
    needs: ['foreign bodies'],
    async run(bench) {
      const { ledger, time } = bench
      const bad = ['not json', '{"id":"x"}', '[]', 'null', '{"id":1,"type":"t","groupId":"g","input":"null"}']
      for (const body of bad) await bench.pushRaw(body)
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const seen: string[] = []
      const claimed: string[] = []
      for (let round = 0; round < 4; round += 1) {
        const reply = await claim(bench, { leaseTicks: 2 })
        claimed.push(...ids(reply.items))
        seen.push(...(reply.unreadable ?? []).map(({ body }) => body))
        await applied(
          ledger,
          reply.items.map((one) => finish(one)),
          'the finish',
        )
        await time.pass(time.ms(3))
      }
      same(claimed, ['a'], 'the items claimed')
      same(seen.toSorted(), bad.toSorted(), 'the bodies reported as unreadable, each once')
    },
  },
  'ledger: a hand-written envelope runs': {
    law: 'A body pushed through the plain queue that has id, type, groupId and input is claimed and can be settled.',
    look: 'how a claim adopts a body that no enqueue has recorded.',
    needs: ['foreign bodies'],
    async run(bench) {
      const { ledger } = bench
      await bench.pushRaw(JSON.stringify({ ...item(bench, 'hand', { groupId: 'g' }), startAt: 0, 'x-mine': 7 }))
      const [hand] = await take(bench, ['hand'])
      same(hand.envelope['x-mine'], 7, 'an unknown field of it')
      await applied(ledger, [finish(hand, '42')], 'the finish')
      const { status, result } = await view(bench, 'hand')
      same({ status, result }, { status: 'success', result: '42' }, 'its view')
      await nothingToClaim(bench, 'after it ended')
    },
  },
})
