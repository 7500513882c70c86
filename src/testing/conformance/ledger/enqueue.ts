import { holds, present, same, show } from '../check.js'
import { clausesOn } from '../clause.js'
import { commitOne, complete, ids, kinds, type LedgerBench } from './bench.js'

export const enqueueClauses = clausesOn<LedgerBench>()({
  'ledger: an enqueued item is claimed with everything it carried': {
    law: 'A committed enqueue makes the item claimable; its envelope comes back whole, unknown fields included.',
    hint: 'how the envelope is taken apart into columns and put together again.',
    async run(bench) {
      const sent = bench.item('a', {
        v: 1,
        input: '{"text":"it\'s \\"quoted\\"\\n漢字"}',
        priority: 3,
        group: 'tenant-1',
        retry: { attempts: 4, base: 10 },
        deadline: bench.time.clock.now() + 1_000_000,
        parent: 'p',
        dependents: ['x', 'y'],
        gates: [],
        tags: ['red', 'blue'],
        trace: { traceparent: '00-ab-cd-01' },
        payloadVersion: 2,
        runTimeout: 5,
        'x-unknown': { nested: [1, null, 'two'] },
      })
      await bench.apply('the enqueue', [bench.enqueue(sent)])
      const { items, now } = await bench.claim()
      same(ids(items), ['a'], 'the items claimed')
      const { lease, envelope, lapses, crashes, deliveries } = present(items[0], 'the claimed item')
      same({ ...envelope }, { ...sent }, 'the envelope')
      same({ lapses, crashes, deliveries }, { lapses: 0, crashes: 0, deliveries: 1 }, 'the counters of a first lease')
      same([lease.id, lease.queue], ['a', bench.queue], 'the id and queue of the lease')
      holds(
        typeof lease.token === 'string' && lease.token.length >= 8,
        `the token is unguessable (${show(lease.token)})`,
      )
      holds(Number.isInteger(lease.fence) && lease.fence >= 1, `the fence is a positive integer (${lease.fence})`)
      if (bench.time.exact) same(lease.until, now + bench.time.ms(30), 'the end of the lease')
      await bench.nothingToClaim('while it is leased')
    },
  },
  'ledger: repeating an enqueue adds nothing': {
    law: 'Guard `absent`: while the id is known in any state, the same enqueue answers `repeated` and changes nothing.',
    hint: 'whether the guard is checked before the group is opened, in the same batch too.',
    needs: ['counts once'],
    async run(bench) {
      const { ledger } = bench
      const settlement = bench.enqueue('a', { groupId: 'g' })
      same(kinds(await ledger.commit([settlement, settlement])), ['applied', 'repeated'], 'twice in one batch')
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again, while it is pending')
      same(await bench.openCount('g'), 1, 'the open count of its group')
      const [a] = await bench.take(['a'])
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again, while it is running')
      await bench.apply('the completion', [complete(a)])
      same(await commitOne(ledger, settlement), { kind: 'repeated', id: 'a' }, 'again, after it ended')
      same(await bench.openCount('g'), 0, 'the open count of its group')
      await bench.nothingToClaim('after the repetitions')
    },
  },
  'ledger: one id enqueued by two processes concurrently is one item': {
    law: 'Guard `absent` holds for exactly one of any set of concurrent enqueues of an id.',
    hint: 'whether the id is checked and written in one atomic step.',
    needs: ['counts once'],
    async run(bench) {
      const other = await bench.again()
      const settlement = bench.enqueue('a', { groupId: 'g' })
      const results = await Promise.all([bench.ledger, other, bench.ledger, other].map((l) => commitOne(l, settlement)))
      same(kinds(results).toSorted(), ['applied', 'repeated', 'repeated', 'repeated'], 'what became of four enqueues')
      same(await bench.openCount('g'), 1, 'the open count of its group')
      const [a] = await bench.take(['a'])
      same(await bench.apply('the completion', [complete(a)]), [{ groupId: 'g' }], 'the groups closed by it')
    },
  },
  'ledger: a delayed item is not claimable before it is due': {
    law: '`delayMs` hides the item until the time of the backend has moved on by that much.',
    hint: 'whether the due time is compared at the claim.',
    async run(bench) {
      const { time } = bench
      await bench.enqueueItems(['later'], {}, { delayMs: time.ms(4) })
      await bench.nothingToClaim('immediately')
      same((await bench.view('later')).status, 'pending', 'its status')
      await time.pass(time.ms(2))
      await bench.nothingToClaim('before it is due')
      await time.pass(time.ms(3))
      await bench.take(['later'])
    },
  },
  'ledger: results align with the batch': {
    law: 'commit answers one result for each settlement, in order; a failed settlement never fails its neighbours.',
    hint: 'whether results are collected by position.',
    async run(bench) {
      const { ledger } = bench
      same(await ledger.commit([]), [], 'the results of an empty batch')
      const [known] = await bench.enqueueAndTake(['known'])
      const forged = { ...known, lease: { ...known.lease, token: 'not the token' } }
      const results = await ledger.commit([
        bench.enqueue('a'),
        complete(forged),
        { guard: { by: 'status', id: 'absent', in: ['pending'] }, effects: [{ do: 'delete', id: 'absent' }] },
        { guard: { by: 'none' }, effects: [{ do: 'log', who: 'suite', why: 'conformance', what: 'nothing' }] },
        bench.enqueue('b'),
      ])
      same(kinds(results), ['applied', 'stale', 'stale', 'applied', 'applied'], 'the kinds of the results')
      await bench.take(['a', 'b'])
    },
  },
  'ledger: an unknown id reads undefined': {
    law: 'read and groups answer in the order of their ids, undefined for ids that do not exist.',
    hint: 'whether the answers align with the ids.',
    async run(bench) {
      const { ledger } = bench
      await bench.enqueueItems(['a'], { groupId: 'g' })
      const views = await ledger.read(['none', 'a', 'none', 'a'])
      same(
        views.map((found) => found?.envelope.id),
        [undefined, 'a', undefined, 'a'],
        'the items read',
      )
      holds(!Object.hasOwn(views[1]?.envelope ?? {}, 'input'), 'a view leaves the input out')
      const groups = await ledger.groups(['none', 'g'])
      same(
        groups.map((group) => group?.open),
        [undefined, 1],
        'the open counts of the groups read',
      )
      same([await ledger.read([]), await ledger.groups([])], [[], []], 'nothing asked, nothing answered')
    },
  },
})
