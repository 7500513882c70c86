import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  commitOne,
  enqueue,
  finish,
  item,
  kinds,
  type LedgerBench,
  nothingToClaim,
  openCount,
  park,
  push,
  release,
  take,
  view,
  worker,
} from './bench.js'

export const leaseClauses = clausesOn<LedgerBench>()({
  'ledger: an item whose lease ran out is claimed again': {
    law: 'A claim first frees leases that have run out; the next lease has a new token and a higher fence.',
    look: 'the reclaim at the beginning of a claim, and how tokens and fences are made.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const tokens = new Set<string>()
      let fence = 0
      for (const lease of ['first', 'second', 'third']) {
        const [a] = await take(bench, ['a'], { leaseTicks: 4 })
        holds(!tokens.has(a.lease.token), `the ${lease} lease has a token of its own`)
        holds(a.lease.fence > fence, `the fence of the ${lease} lease (${a.lease.fence}) is above the last (${fence})`)
        tokens.add(a.lease.token)
        fence = a.lease.fence
        await time.pass(time.ms(2))
        await nothingToClaim(bench, `while the ${lease} lease runs`)
        await time.pass(time.ms(3))
      }
    },
  },
  'ledger: a lease ends exactly at its end': {
    law: 'A lease has run out when its end is not after the time of the backend.',
    look: 'the comparison: lapsed means until <= now.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      await time.pass(a.lease.until - time.clock.now() - 1)
      await nothingToClaim(bench, 'one millisecond before the lease ends')
      await time.pass(1)
      await take(bench, ['a'])
    },
  },
  'ledger: a put-back spends neither attempt, lapse nor crash': {
    law: '`release` ends a lease without a trace in attempt, lapses and crashes; only deliveries go up.',
    look: 'whether release is told apart from an expiry.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      for (const deliveries of [1, 2, 3]) {
        const [a] = await take(bench, ['a'])
        same(
          [a.envelope.attempt, a.lapses, a.crashes],
          [1, 0, 0],
          `attempt, lapses and crashes at delivery ${deliveries}`,
        )
        same(a.deliveries, deliveries, 'the deliveries')
        await applied(ledger, [release(a)], 'the release')
      }
    },
  },
  'ledger: a stale lease can settle nothing': {
    law: 'A settlement whose lease is no longer current answers `stale`, and none of its effects happen.',
    look: 'whether every effect stands behind the guard, children and group counts too.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [old] = await take(bench, ['a'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [current] = await take(bench, ['a'], { ledger: other })
      const late = finish(old, '"late"', [
        { do: 'openGroup', groupId: 'g', by: 1 },
        push(bench, item(bench, 'child', { groupId: 'g' })),
        { do: 'contribute', groupId: 'g', value: '"late"', final: true },
      ])
      same(await commitOne(ledger, late), { kind: 'stale' }, 'the settlement of the stale lease')
      same((await ledger.read(['child']))[0], undefined, 'the child that it would have pushed')
      same((await ledger.groups(['g']))[0], { open: 1, final: false, version: 0 }, 'the group')
      same((await view(bench, 'a')).status, 'running', 'the status of the item')
      const closed = await applied(other, [finish(current, '"in time"')], 'the settlement of the current lease')
      same(closed, [{ groupId: 'g' }], 'the groups closed')
      same((await view(bench, 'a')).result, '"in time"', 'the result')
      same((await commitOne(ledger, late)).kind, 'stale', 'the settlement of the stale lease, after the item ended')
    },
  },
  'ledger: a lease whose item has ended since can settle nothing': {
    law: 'An item that another run has ended stays as that run left it, however late an older lease comes back.',
    look: 'whether the guard still knows who settled the item when every lease of it is long over.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      const both = ['finished', 'parked'].map((id) => enqueue(bench, item(bench, id)))
      await applied(ledger, both, 'two enqueues')
      const old = await take(bench, ['finished', 'parked'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [finished, parked] = await take(bench, ['finished', 'parked'], { ledger: other, leaseTicks: 2 })
      await applied(other, [finish(finished, '"right"'), park(parked, 'Error: right')], 'the ends by the second holder')
      // Long enough for everything that lives only as long as a lease to be gone.
      await time.pass(time.ms(10))
      const late = [park(old[0], 'Error: late'), finish(old[1], '"late"')]
      same(kinds(await ledger.commit(late)), ['stale', 'stale'], 'the ends by the first holder, long after')
      const views = await ledger.read(['finished', 'parked'])
      same(
        views.map((view) => [view?.status, view?.result ?? view?.error]),
        [
          ['success', '"right"'],
          ['dead', 'Error: right'],
        ],
        'the outcomes',
      )
    },
  },
  'ledger: a lease whose successor has lapsed too can settle nothing': {
    law: 'Once a newer lease has begun, an older one is stale for good, also while nobody holds the item.',
    look: 'whether the guard compares with the newest lease there was, rather than with the one that lives.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [first] = await take(bench, ['a'], { leaseTicks: 2, runs: true })
      await time.pass(time.ms(3))
      await take(bench, ['a'], { ledger: other, leaseTicks: 2, runs: true })
      await time.pass(time.ms(10))
      same(await commitOne(ledger, finish(first, '"late"')), { kind: 'stale' }, 'the end by the first of two holders')
      same(await openCount(bench, 'g'), 1, 'the open count')
      const [third] = await take(bench, ['a'])
      same(third.crashes, 2, 'the crashes')
      await applied(ledger, [finish(third)], 'the end by the third holder')
    },
  },
  'ledger: a forged token can settle nothing': {
    law: 'Only the token decides who holds a lease: a right id and fence with a wrong token is stale.',
    look: 'whether the guard compares the token.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      for (const token of ['', 'nope', "' or '1'='1", `${a.lease.token} `]) {
        const forged = { ...a, lease: { ...a.lease, token } }
        same(
          await commitOne(ledger, finish(forged)),
          { kind: 'stale' },
          `a finish with the token ${JSON.stringify(token)}`,
        )
        same(
          await ledger.extend([{ lease: forged.lease, running: true }], bench.time.ms(30), worker()),
          ['lost'],
          'an extension with it',
        )
      }
      await applied(ledger, [finish(a)], 'the finish with the real token')
    },
  },
  'ledger: a lease that was settled or given back cannot be extended': {
    law: 'extend answers `lost` for a lease that is not current, and moves nothing.',
    look: 'whether extend compares the token.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a')), enqueue(bench, item(bench, 'b'))], 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'], { leaseTicks: 6 })
      await applied(ledger, [finish(a), release(b)], 'a finish and a release')
      const [again] = await take(bench, ['b'], { leaseTicks: 6 })
      const held = [a, b, again].map(({ lease }) => ({ lease, running: true }))
      same(await ledger.extend(held, time.ms(6), worker()), ['lost', 'lost', 'held'], 'the answers, in order')
    },
  },
  'ledger: extend moves the end of the lease to now + leaseMs': {
    law: 'extend makes the lease end leaseMs from now; many leases at once, answered in order.',
    look: 'whether the new end is computed from the time of the backend.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a')), enqueue(bench, item(bench, 'b'))], 'two enqueues')
      const [a] = await take(bench, ['a', 'b'], { leaseTicks: 6 })
      same(await ledger.extend([], time.ms(6), worker()), [], 'the answer for no leases')
      await time.pass(time.ms(4))
      same(await ledger.extend([{ lease: a.lease, running: true }], time.ms(6), worker()), ['held'], 'the answer')
      await time.pass(time.ms(4))
      await take(bench, ['b'])
      await time.pass(time.ms(3))
      await take(bench, ['a'])
    },
  },
  'ledger: progress told with an extension can be read': {
    law: 'The progress of the last extension stands in the view of the item.',
    look: 'whether extend stores progress.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      const tell = (progress: string) =>
        ledger.extend([{ lease: a.lease, running: true, progress }], time.ms(30), worker())
      await tell('{"done":1}')
      await tell('{"done":2}')
      await ledger.extend([{ lease: a.lease, running: true }], time.ms(30), worker())
      same((await view(bench, 'a')).progress, '{"done":2}', 'the progress')
    },
  },
  'ledger: a running item shows who holds it': {
    law: 'The view of a running item names its holder and the end of its lease; a pending one names neither.',
    look: 'what read returns while a lease runs.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [a] = await take(bench, ['a'], { worker: 'worker-7' })
      const { status, holder, leaseUntil } = await view(bench, 'a')
      same(
        { status, holder, leaseUntil },
        { status: 'running', holder: 'worker-7', leaseUntil: a.lease.until },
        'the view',
      )
      await applied(ledger, [release(a, time.ms(1))], 'the release')
      const after = await view(bench, 'a')
      same(
        [after.status, after.holder, after.leaseUntil],
        ['pending', undefined, undefined],
        'the view after the release',
      )
    },
  },
  'ledger: an item may be born leased': {
    law: 'A push with `heldBy` is running at once under that token; if its holder dies it is claimed as any other.',
    look: 'whether the lease is written in the same step as the item.',
    needs: ['born leased'],
    async run(bench) {
      const { ledger, time } = bench
      const born = (id: string) => ({
        settlement: enqueue(bench, item(bench, id), {
          heldBy: { worker: 'w1', token: `token of ${id}`, leaseMs: time.ms(4) },
        }),
        lease: { id, queue: bench.queue, token: `token of ${id}`, fence: 1, until: time.clock.now() + time.ms(4) },
      })
      const a = born('a')
      const b = born('b')
      await applied(ledger, [a.settlement, b.settlement], 'two enqueues, born leased')
      await nothingToClaim(bench, 'while they are held')
      same((await view(bench, 'a')).status, 'running', 'the status')
      const run = { lease: a.lease, envelope: item(bench, 'a'), lapses: 0, crashes: 0, deliveries: 1 }
      await applied(ledger, [finish(run, '1')], 'the finish by the token it was born with')
      await time.pass(time.ms(5))
      const [found] = await take(bench, ['b'])
      same([found.lapses, found.crashes], [1, 0], 'lapses and crashes of the one whose holder never said that it ran')
      holds(found.lease.fence > 1, 'its fence rose')
      same(
        await commitOne(ledger, finish({ ...run, lease: b.lease })),
        { kind: 'stale' },
        'the late finish of its first holder',
      )
    },
  },
  'ledger: a lease is worth nothing for another item': {
    law: 'The guard checks that the lease is the current one of its own item.',
    look: 'whether the guard looks up the item by id and token together.',
    async run(bench) {
      const { ledger } = bench
      const both = ['a', 'b'].map((id) => enqueue(bench, item(bench, id, { groupId: 'g' })))
      await applied(ledger, both, 'two enqueues')
      const [a, b] = await take(bench, ['a', 'b'])
      const crossed = { ...a, lease: { ...a.lease, token: b.lease.token } }
      same(await commitOne(ledger, finish(crossed)), { kind: 'stale' }, 'a finish of a by the token of b')
      same(await openCount(bench, 'g'), 2, 'the open count of the group')
      await applied(ledger, [finish(a), finish(b)], 'the finishes by the right tokens')
    },
  },
})
