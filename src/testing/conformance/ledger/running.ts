import { present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { complete, type LedgerBench, retry, worker } from './bench.js'

/** A heartbeat that says whether the handler runs. */
const beat = (
  bench: LedgerBench,
  lease: Parameters<LedgerBench['ledger']['extend']>[0][0]['lease'],
  running: boolean,
) => bench.ledger.extend([{ lease, running }], bench.time.ms(2), worker())

export const runningClauses = clausesOn<LedgerBench>()({
  'ledger: a lease that lapses before anything ran is no crash': {
    law: '`lapses` counts leases that ended by expiry; one whose holder never said that its handler ran adds nothing to `crashes`.',
    hint: 'where the two counters are raised: at the reclaim, the second only for a lease that is marked as running.',
    needs: ['lapses'],
    async run(bench) {
      const { time } = bench
      await bench.enqueueItems(['a'])
      const counters = []
      for (const runs of [false, true, false, true]) {
        const [a] = await bench.take(['a'], { leaseTicks: 2, runs })
        counters.push([a.lapses, a.crashes])
        await time.pass(time.ms(3))
      }
      const expected = [
        [0, 0],
        [1, 0],
        [2, 1],
        [3, 1],
      ]
      same(counters, expected, 'lapses and crashes at four leases; the second and the fourth ran')
    },
  },
  'ledger: the last heartbeat says whether a lapse is a crash': {
    law: '`running` belongs to the lease and each extension overwrites it; a claim begins with false.',
    hint: 'whether extend stores false as well as true, and whether a new lease begins without the mark of the last one.',
    async run(bench) {
      const { ledger, time } = bench
      const names = ['waited', 'ran', 'ended', 'ran again'] as const
      const [waited, ran, ended, again] = await bench.enqueueAndTake(names, {}, { leaseTicks: 2, runs: false })
      // In one call for all, as the engine does it.
      const report = (...running: boolean[]) =>
        ledger.extend(
          [waited, ran, ended, again].map(({ lease }, i) => ({ lease, running: running[i]! })),
          time.ms(2),
          worker(),
        )
      const begun = [ran, ended, again].map(({ lease }) => lease)
      await ledger.markStarted?.(begun)
      same(await report(false, true, true, true), ['held', 'held', 'held', 'held'], 'the answers')
      await report(false, true, false, false)
      await report(false, true, false, true)
      await time.pass(time.ms(3))
      const reply = await bench.claim({ leaseTicks: 2, runs: false })
      const crashes = Object.fromEntries(reply.items.map((claimed) => [claimed.lease.id, claimed.crashes]))
      same(crashes, { waited: 0, ran: 1, ended: 0, 'ran again': 1 }, 'the crashes once all four leases ran out')
      same(reply.crashed ?? [], ['t', 't'], 'the types that the claim reports')
      await time.pass(time.ms(3))
      const next = await bench.claim()
      const later = Object.fromEntries(next.items.map((claimed) => [claimed.lease.id, claimed.crashes]))
      same(later, crashes, 'the crashes once the next leases ran out without a run')
    },
  },
  'ledger: an item born leased is no crash until a heartbeat says that it runs': {
    law: 'Birth under a lease starts with running = false, as a claim does.',
    hint: 'what the enqueue writes beside the lease.',
    needs: ['born leased', 'lapses'],
    async run(bench) {
      const { time } = bench
      const leasedTo = (id: string) => ({ worker: 'w1', token: `token of ${id}`, leaseMs: time.ms(2) })
      const born = ['waited', 'ran'].map((id) => bench.enqueue(id, {}, { leasedTo: leasedTo(id) }))
      await bench.apply('two enqueues, born leased', born)
      const lease = { id: 'ran', queue: bench.queue, token: 'token of ran', fence: 1, until: time.clock.now() }
      same(await beat(bench, lease, true), ['held'], 'the heartbeat of the running one')
      await time.pass(time.ms(3))
      const [waited, ran] = await bench.take(['waited', 'ran'])
      same([waited.lapses, waited.crashes], [1, 0], 'lapses and crashes of the one that only waited')
      same([ran.lapses, ran.crashes], [1, 1], 'lapses and crashes of the one that ran')
    },
  },
  'ledger: a crash is counted once for each run': {
    law: '`crashes` counts the lapses of leases whose handler ran, also across processes.',
    hint: 'whether the mark is written where another process finds it.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      await bench.enqueueItems(['a'])
      const crashes = []
      for (const by of [ledger, other, ledger]) {
        const [a] = await bench.take(['a'], { leaseTicks: 2, ledger: by, runs: true })
        crashes.push(a.crashes)
        await time.pass(time.ms(3))
      }
      same(crashes, [0, 1, 2], 'the crashes at three leases, by two processes, that all ran')
    },
  },
  'ledger: a claim reports each crashed run once': {
    law: 'The claim that finds a running lease lapsed names its type in `crashed`; later ones do not.',
    hint: 'what the reclaim returns.',
    async run(bench) {
      const { ledger, time } = bench
      const other = await bench.again()
      await bench.enqueueItems(['a'])
      const reported = []
      for (const by of [ledger, other, ledger]) {
        const reply = await bench.claim({ leaseTicks: 2, ledger: by, runs: true })
        reported.push(reply.crashed ?? [])
        await bench.apply('a retry', [retry(reply.items[0]!, 0)].slice(0, reported.length - 1), by)
        if (reported.length === 1) await time.pass(time.ms(3))
      }
      const { type } = bench.item('a')
      same(reported, [[], [type], []], 'what a first claim, one after a crash and one after a retry reported')
    },
  },
  'ledger: an item shows when it was handed to its worker': {
    law: '`runAt` is the time of the claim (of the birth, where it was born leased); heartbeats and its end leave it.',
    hint: 'what the claim writes into the view, and whether extend or the end of the item overwrites it.',
    needs: ['inspect', 'exact time'],
    async run(bench) {
      const { time } = bench
      await bench.enqueueItems(['a'])
      await time.pass(time.ms(1))
      const handed = time.clock.now()
      const [a] = await bench.take(['a'])
      same((await bench.view('a')).runAt, handed, '`runAt` once it is claimed')
      await time.pass(time.ms(1))
      await beat(bench, a.lease, true)
      same((await bench.view('a')).runAt, handed, '`runAt` after a heartbeat')
      await time.pass(time.ms(1))
      await bench.apply('the completion', [complete(a)])
      same((await bench.view('a')).runAt, handed, '`runAt` once it has ended')
      const leasedTo = { worker: 'w1', token: 'token of b', leaseMs: time.ms(2) }
      await bench.enqueueItems(['b'], {}, { leasedTo })
      same((await bench.view('b')).runAt, time.clock.now(), '`runAt` of the item born leased')
    },
  },
  'ledger: an item shows whether its handler ran at its last heartbeat': {
    law: '`running` is there while the item is leased: false from the claim or the birth on, then what each heartbeat says.',
    hint: 'whether read and list both show the mark of the lease, also when it is false, and only while there is a lease.',
    needs: ['inspect', 'born leased'],
    async run(bench) {
      const { ledger, time } = bench
      const inspect = present(ledger.inspect, '`inspect`')
      const shown = async (id: string) => {
        const { items } = await inspect.list({ limit: 10 })
        const listed = items.find(({ envelope }) => envelope.id === id)
        return [(await bench.view(id)).running, listed?.running]
      }
      const steps: unknown[] = []
      const see = async (id: string) => steps.push(await shown(id))
      await bench.enqueueItems(['a'])
      await see('a')
      const [first] = await bench.take(['a'], { leaseTicks: 2, runs: false })
      await see('a')
      for (const running of [true, false, true]) {
        await beat(bench, first.lease, running)
        await see('a')
      }
      const both = (running: boolean | undefined) => [running, running]
      same(steps, [undefined, false, true, false, true].map(both), 'enqueued, claimed, and after three heartbeats')
      await time.pass(time.ms(3))
      const [second] = await bench.take(['a'], { runs: false })
      same(await shown('a'), both(false), 'claimed again after its lease lapsed')
      await beat(bench, second.lease, true)
      await bench.apply('the retry', [retry(second, 0)])
      same(await shown('a'), both(undefined), 'once it waits for its next try')
      const [third] = await bench.take(['a'], { runs: true })
      same(await shown('a'), both(true), 'once that one runs')
      await bench.apply('the completion', [complete(third)])
      same(await shown('a'), both(undefined), 'once it has ended')
      const leasedTo = { worker: 'w1', token: 'token of b', leaseMs: time.ms(2) }
      await bench.enqueueItems(['b'], {}, { leasedTo })
      same(await shown('b'), both(false), 'an item born leased')
    },
  },
})
