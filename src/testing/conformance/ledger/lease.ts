import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { commitOne, complete, deadLetter, kinds, type LedgerBench, release, setGroupValue, worker } from './bench.js'

export const leaseClauses = clausesOn<LedgerBench>()({
  'ledger: an item whose lease ran out is claimed again': {
    law: 'A claim first frees leases that have run out; the next lease has a new token and a higher fence.',
    hint: 'the reclaim at the beginning of a claim, and how tokens and fences are made.',
    async run(bench) {
      const { time } = bench
      await bench.enqueueItems(['a'])
      const tokens = new Set<string>()
      let fence = 0
      for (const lease of ['first', 'second', 'third']) {
        const [a] = await bench.take(['a'], { leaseTicks: 4 })
        holds(!tokens.has(a.lease.token), `the ${lease} lease has its own token`)
        holds(a.lease.fence > fence, `the fence of the ${lease} lease (${a.lease.fence}) is above the last (${fence})`)
        tokens.add(a.lease.token)
        fence = a.lease.fence
        await time.pass(time.ms(2))
        await bench.nothingToClaim(`while the ${lease} lease runs`)
        await time.pass(time.ms(3))
      }
    },
  },
  'ledger: a lease ends exactly at its end': {
    law: 'A lease has run out when its end is not after the time of the backend.',
    hint: 'the comparison: lapsed means until <= now.',
    needs: ['exact time'],
    async run(bench) {
      const { time } = bench
      const [a] = await bench.enqueueAndTake(['a'])
      await time.pass(a.lease.until - time.clock.now() - 1)
      await bench.nothingToClaim('one millisecond before the lease ends')
      await time.pass(1)
      await bench.take(['a'])
    },
  },
  'ledger: a release spends neither attempt, lapse nor crash': {
    law: '`release` ends a lease without a trace in attempt, lapses and crashes; only deliveries go up.',
    hint: 'whether a release is distinguished from an expiry.',
    async run(bench) {
      await bench.enqueueItems(['a'])
      for (const deliveries of [1, 2, 3]) {
        const [a] = await bench.take(['a'])
        same(
          [a.envelope.attempt, a.lapses, a.crashes],
          [1, 0, 0],
          `attempt, lapses and crashes at delivery ${deliveries}`,
        )
        same(a.deliveries, deliveries, 'the deliveries')
        await bench.apply('the release', [release(a)])
      }
    },
  },
  'ledger: a stale lease can settle nothing': {
    law: 'A settlement whose lease is no longer current answers `stale`, and none of its effects happen.',
    hint: 'whether every effect stands behind the guard, children and group counts too.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      const [old] = await bench.enqueueAndTake(['a'], { groupId: 'g' }, { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [current] = await bench.take(['a'], { ledger: other })
      const late = complete(old, '"late"', [
        { do: 'joinGroup', groupId: 'g', count: 1 },
        bench.enqueueEffect('child', { groupId: 'g' }),
        setGroupValue('g', '"late"', true),
      ])
      same(await commitOne(ledger, late), { kind: 'stale' }, 'the settlement of the stale lease')
      same((await ledger.read(['child']))[0], undefined, 'the child that it would have enqueued')
      same((await ledger.groups(['g']))[0], { open: 1, final: false, version: 0 }, 'the group')
      same((await bench.view('a')).status, 'running', 'the status of the item')
      const closed = await bench.apply('the settlement of the current lease', [complete(current, '"in time"')], other)
      same(closed, [{ groupId: 'g' }], 'the groups closed')
      same((await bench.view('a')).result, '"in time"', 'the result')
      same((await commitOne(ledger, late)).kind, 'stale', 'the settlement of the stale lease, after the item ended')
    },
  },
  'ledger: a lease whose item has ended since can settle nothing': {
    law: 'An item that another run has ended stays as that run left it, however late an older lease comes back.',
    hint: 'whether the guard still knows which lease settled the item when every lease has ended.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      const old = await bench.enqueueAndTake(['completed', 'dead'], {}, { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [completed, dead] = await bench.take(['completed', 'dead'], { ledger: other, leaseTicks: 2 })
      await bench.apply(
        'the ends by the second holder',
        [complete(completed, '"right"'), deadLetter(dead, 'Error: right')],
        other,
      )
      // Long enough for everything that lives only as long as a lease to be gone.
      await time.pass(time.ms(10))
      const late = [deadLetter(old[0], 'Error: late'), complete(old[1], '"late"')]
      same(kinds(await ledger.commit(late)), ['stale', 'stale'], 'the ends by the first holder, long after')
      const views = await ledger.read(['completed', 'dead'])
      same(
        views.map((view) => [view?.status, view?.result ?? view?.error]),
        [
          ['completed', '"right"'],
          ['dead', 'Error: right'],
        ],
        'the outcomes',
      )
    },
  },
  'ledger: a lease whose successor has lapsed too can settle nothing': {
    law: 'Once a newer lease has begun, an older one is stale for good, also while no worker holds the item.',
    hint: 'whether the guard compares with the newest lease there was, rather than with the live one.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      const [first] = await bench.enqueueAndTake(['a'], { groupId: 'g' }, { leaseTicks: 2, runs: true })
      await time.pass(time.ms(3))
      await bench.take(['a'], { ledger: other, leaseTicks: 2, runs: true })
      await time.pass(time.ms(10))
      same(await commitOne(ledger, complete(first, '"late"')), { kind: 'stale' }, 'the end by the first of two holders')
      same(await bench.openCount('g'), 1, 'the open count')
      const [third] = await bench.take(['a'])
      same(third.crashes, 2, 'the crashes')
      await bench.apply('the end by the third holder', [complete(third)])
    },
  },
  'ledger: a forged token can settle nothing': {
    law: 'Only the token proves a lease: the right id and fence with a wrong token is stale.',
    hint: 'whether the guard compares the token.',
    async run(bench) {
      const { ledger } = bench
      const [a] = await bench.enqueueAndTake(['a'])
      for (const token of ['', 'nope', "' or '1'='1", `${a.lease.token} `]) {
        const forged = { ...a, lease: { ...a.lease, token } }
        same(
          await commitOne(ledger, complete(forged)),
          { kind: 'stale' },
          `a completion with the token ${JSON.stringify(token)}`,
        )
        same(
          await ledger.extend([{ lease: forged.lease, running: true }], bench.time.ms(30), worker()),
          ['lost'],
          'an extension with it',
        )
      }
      await bench.apply('the completion with the real token', [complete(a)])
    },
  },
  'ledger: a lease that was settled or given back cannot be extended': {
    law: 'extend answers `lost` for a lease that is not current, and moves nothing.',
    hint: 'whether extend compares the token.',
    async run(bench) {
      const { ledger, time } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'], {}, { leaseTicks: 6 })
      await bench.apply('a completion and a release', [complete(a), release(b)])
      const [again] = await bench.take(['b'], { leaseTicks: 6 })
      const held = [a, b, again].map(({ lease }) => ({ lease, running: true }))
      same(await ledger.extend(held, time.ms(6), worker()), ['lost', 'lost', 'held'], 'the answers, in order')
    },
  },
  'ledger: extend moves the end of the lease to now + leaseMs': {
    law: 'extend makes the lease end leaseMs from now; many leases in one call, answered in order.',
    hint: 'whether the new end is computed from the time of the backend.',
    async run(bench) {
      const { ledger, time } = bench
      const [a] = await bench.enqueueAndTake(['a', 'b'], {}, { leaseTicks: 6 })
      same(await ledger.extend([], time.ms(6), worker()), [], 'the answer for no leases')
      await time.pass(time.ms(4))
      same(await ledger.extend([{ lease: a.lease, running: true }], time.ms(6), worker()), ['held'], 'the answer')
      await time.pass(time.ms(4))
      await bench.take(['b'])
      await time.pass(time.ms(3))
      await bench.take(['a'])
    },
  },
  'ledger: progress sent with an extension can be read': {
    law: 'The view of an item has the progress of its last extension.',
    hint: 'whether extend stores progress.',
    async run(bench) {
      const { ledger, time } = bench
      const [a] = await bench.enqueueAndTake(['a'])
      const report = (progress: string) =>
        ledger.extend([{ lease: a.lease, running: true, progress }], time.ms(30), worker())
      await report('{"done":1}')
      await report('{"done":2}')
      await ledger.extend([{ lease: a.lease, running: true }], time.ms(30), worker())
      same((await bench.view('a')).progress, '{"done":2}', 'the progress')
    },
  },
  'ledger: a running item shows which worker holds it': {
    law: 'The view of a running item names its holder and the end of its lease; a pending one names neither.',
    hint: 'what read returns while a lease runs.',
    needs: ['inspect'],
    async run(bench) {
      const { time } = bench
      const [a] = await bench.enqueueAndTake(['a'], {}, { worker: 'worker-7' })
      const { status, worker, leaseUntil } = await bench.view('a')
      same(
        { status, worker, leaseUntil },
        { status: 'running', worker: 'worker-7', leaseUntil: a.lease.until },
        'the view',
      )
      await bench.apply('the release', [release(a, time.ms(1))])
      const after = await bench.view('a')
      same(
        [after.status, after.worker, after.leaseUntil],
        ['pending', undefined, undefined],
        'the view after the release',
      )
    },
  },
  'ledger: an item may be born leased': {
    law: 'An item enqueued with `leasedTo` runs immediately under that token; if its holder dies, it is claimed like any other.',
    hint: 'whether the lease is written in the same step as the item.',
    needs: ['born leased'],
    async run(bench) {
      const { ledger, time } = bench
      const born = (id: string) => ({
        settlement: bench.enqueue(
          id,
          {},
          {
            leasedTo: { worker: 'w1', token: `token of ${id}`, leaseMs: time.ms(4) },
          },
        ),
        lease: { id, queue: bench.queue, token: `token of ${id}`, fence: 1, until: time.clock.now() + time.ms(4) },
      })
      const a = born('a')
      const b = born('b')
      await bench.apply('two enqueues, born leased', [a.settlement, b.settlement])
      await bench.nothingToClaim('while they are held')
      same((await bench.view('a')).status, 'running', 'the status')
      const run = { lease: a.lease, envelope: bench.item('a'), lapses: 0, crashes: 0, deliveries: 1 }
      await bench.apply('the completion by its first token', [complete(run, '1')])
      await time.pass(time.ms(5))
      const [found] = await bench.take(['b'])
      same([found.lapses, found.crashes], [1, 0], 'lapses and crashes of the one whose holder never said that it ran')
      holds(found.lease.fence > 1, 'its fence rose')
      same(
        await commitOne(ledger, complete({ ...run, lease: b.lease })),
        { kind: 'stale' },
        'the late completion by its first holder',
      )
    },
  },
  'ledger: a lease cannot settle another item': {
    law: 'The guard checks that the lease is the current one of its own item.',
    hint: 'whether the guard finds the item by id and token together.',
    async run(bench) {
      const { ledger } = bench
      const [a, b] = await bench.enqueueAndTake(['a', 'b'], { groupId: 'g' })
      const crossed = { ...a, lease: { ...a.lease, token: b.lease.token } }
      same(await commitOne(ledger, complete(crossed)), { kind: 'stale' }, 'a completion of a by the token of b')
      same(await bench.openCount('g'), 2, 'the open count of the group')
      await bench.apply('the completions by the right tokens', [complete(a), complete(b)])
    },
  },
})
