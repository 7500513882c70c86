import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { commitOne, complete, kinds, type LedgerBench, notifyGate, releaseNow, retry, wakeUps } from './bench.js'

export const releaseClauses = clausesOn<LedgerBench>()({
  'ledger: a scheduled or retrying item is made ready by a release': {
    law: '`release` with no delay, behind the guard that an item is pending, makes it ready immediately, with its attempt.',
    hint: 'whether the item leaves the delayed ones for the ready index, and the workers of the queue are woken.',
    needs: ['inspect', 'redrive and delete'],
    async run(bench) {
      const { ledger, time } = bench
      const long = { delayMs: time.ms(100_000) }
      const [retrying] = await bench.enqueueAndTake(['retrying'], { tags: ['x'] })
      await bench.apply('a retry, and an enqueue for later', [
        retry(retrying, long.delayMs),
        bench.enqueue('scheduled', { tags: ['x'] }, long),
      ])
      await bench.nothingToClaim('before they are due')
      const { heard, leave } = wakeUps(ledger)
      await bench.apply('their release', [releaseNow('scheduled'), releaseNow('retrying')])
      const isHeard = await time.eventually(() => heard.some(({ queue }) => queue === bench.queue))
      leave()
      holds(isHeard, 'the workers of the queue are woken')
      const { items } = await bench.inspect.list({ state: 'waiting', tag: 'x', limit: 10 })
      same(items.map(({ envelope }) => envelope.id).toSorted(), ['retrying', 'scheduled'], 'the waiting items')
      const [first, second] = await bench.take(['scheduled', 'retrying'])
      same([first.envelope.attempt, second.envelope.attempt], [1, 2], 'their attempts')
      await bench.apply('their ends', [complete(first), complete(second)])
      same(
        kinds(await ledger.commit([releaseNow('scheduled'), releaseNow('retrying')])),
        ['stale', 'stale'],
        'a release after it',
      )
      await time.pass(time.ms(5))
      await bench.nothingToClaim('after their ends')
    },
  },
  'ledger: an item that a gate holds is made ready by a release, once': {
    law: '`release` with no delay frees an item from its gate, which ends the gate: what its members do later changes nothing.',
    hint: 'whether the hold goes with its gate, and whether a gate that decides later still touches its item.',
    needs: ['inspect', 'redrive and delete'],
    async run(bench) {
      const { time } = bench
      await bench.enqueueItems(['m1', 'm2'], {}, { delayMs: time.ms(3) })
      await bench.apply('the gate', [bench.gated('held', ['m1', 'm2'])])
      same((await bench.view('held')).hold?.by, 'gate', 'what holds it')
      await bench.apply('its release', [releaseNow('held')])
      same((await bench.view('held')).hold, undefined, 'what holds it, after the release')
      const [held] = await bench.take(['held'])
      same(held.gate, undefined, 'what its gate decided')
      await time.pass(time.ms(5))
      const [m1, m2] = await bench.take(['m1', 'm2'])
      await bench.apply('the end of a member, which notifies the gate', [complete(m1, '1', [notifyGate('held', 'm1')])])
      await bench.apply('its end', [complete(held, '1')])
      await bench.apply('the end of the other member', [complete(m2, '1', [notifyGate('held', 'm2')])])
      await bench.nothingToClaim('when the gate would have decided')
      same((await bench.view('held')).status, 'completed', 'where it stands')
      const key = 'gate of held'
      same(await bench.inspect.gate(key), undefined, 'the gate')
    },
  },
  'ledger: a release takes an item from the worker that runs it': {
    law: '`release` behind the guard that an item is running makes it ready, and the lease that it had settles nothing.',
    hint: 'whether the lease ends with the release.',
    needs: ['inspect', 'redrive and delete'],
    async run(bench) {
      const { ledger } = bench
      const [first] = await bench.enqueueAndTake(['a'])
      same((await commitOne(ledger, releaseNow('a'))).kind, 'stale', 'the release behind a guard for pending')
      await bench.apply('the release', [releaseNow('a', 'running')])
      same((await commitOne(ledger, complete(first))).kind, 'stale', 'the end by the lease that it had')
      const [second] = await bench.take(['a'])
      holds(second.lease.fence > first.lease.fence, 'the next lease has a higher fence')
      await bench.apply('its end', [complete(second, '1')])
    },
  },
})
