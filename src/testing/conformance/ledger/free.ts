import type { Status } from '../../../ports/item.js'
import type { Settlement } from '../../../ports/settlement.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  commitOne,
  enqueue,
  finish,
  gated,
  item,
  kinds,
  type LedgerBench,
  nothingToClaim,
  nudges,
  retry,
  take,
  tell,
  view,
} from './bench.js'

/** What a person's "run it now", and a repair, commit. */
const free = (id: string, status: Status = 'pending'): Settlement => ({
  guard: { by: 'status', id, in: [status] },
  effects: [{ do: 'release', id, delayMs: 0 }],
})

export const freeClauses = clausesOn<LedgerBench>()({
  'ledger: a scheduled or retrying item is made ready by a release': {
    law: '`release` with no delay, behind the guard that an item is pending, makes it ready at once, with its attempt.',
    look: 'whether the item leaves the delayed ones for the ready index, and whoever serves the queue is nudged.',
    needs: ['inspect', 'redrive and erase'],
    async run(bench) {
      const { ledger, time } = bench
      const long = { delayMs: time.ms(100_000) }
      await applied(ledger, [enqueue(bench, item(bench, 'retrying', { tags: ['x'] }))], 'the enqueue')
      const [retrying] = await take(bench, ['retrying'])
      await applied(
        ledger,
        [retry(retrying, long.delayMs), enqueue(bench, item(bench, 'scheduled', { tags: ['x'] }), long)],
        'a retry, and an enqueue for later',
      )
      await nothingToClaim(bench, 'before they are due')
      const { heard, leave } = nudges(ledger)
      await applied(ledger, [free('scheduled'), free('retrying')], 'their release')
      const isHeard = await time.eventually(() => heard.some(({ queue }) => queue === bench.queue))
      leave()
      holds(isHeard, 'whoever serves the queue is nudged')
      const { items } = await ledger.inspect!.list({ state: 'waiting', tag: 'x', limit: 10 })
      same(items.map(({ envelope }) => envelope.id).toSorted(), ['retrying', 'scheduled'], 'those that are waiting')
      const [first, second] = await take(bench, ['scheduled', 'retrying'])
      same([first.envelope.attempt, second.envelope.attempt], [1, 2], 'their attempts')
      await applied(ledger, [finish(first), finish(second)], 'their ends')
      same(kinds(await ledger.commit([free('scheduled'), free('retrying')])), ['stale', 'stale'], 'a release after it')
      await time.pass(time.ms(5))
      await nothingToClaim(bench, 'after their ends')
    },
  },
  'ledger: an item that a gate holds is made ready by a release, once': {
    law: '`release` with no delay frees an item from its gate, which is over then: what its members do later changes nothing.',
    look: 'whether the hold goes with its gate, and whether a gate that decides later still looks for its item.',
    needs: ['inspect', 'redrive and erase'],
    async run(bench) {
      const { ledger, time } = bench
      await applied(
        ledger,
        ['m1', 'm2'].map((id) => enqueue(bench, item(bench, id), { delayMs: time.ms(3) })),
        'two members',
      )
      await applied(ledger, [gated(bench, 'held', ['m1', 'm2'])], 'the gate')
      same((await view(bench, 'held')).hold?.by, 'gate', 'what holds it')
      await applied(ledger, [free('held')], 'its release')
      same((await view(bench, 'held')).hold, undefined, 'what holds it, after the release')
      const [held] = await take(bench, ['held'])
      same(held.gate, undefined, 'what its gate decided')
      await time.pass(time.ms(5))
      const [m1, m2] = await take(bench, ['m1', 'm2'])
      await applied(ledger, [finish(m1, '1', [tell('held', 'm1')])], 'the end of a member, told to the gate')
      await applied(ledger, [finish(held, '1')], 'its end')
      await applied(ledger, [finish(m2, '1', [tell('held', 'm2')])], 'the end of the other member')
      await nothingToClaim(bench, 'when the gate would have decided')
      same((await view(bench, 'held')).status, 'success', 'where it stands')
      const key = 'gate of held'
      same(await ledger.inspect!.gate(key), undefined, 'the gate')
    },
  },
  'ledger: a release takes an item from whoever runs it': {
    law: '`release` behind the guard that an item is running makes it ready, and the lease that it had settles nothing.',
    look: 'whether the lease ends with the release.',
    needs: ['inspect', 'redrive and erase'],
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a'))], 'the enqueue')
      const [first] = await take(bench, ['a'])
      same((await commitOne(ledger, free('a'))).kind, 'stale', 'the release of one that is pending')
      await applied(ledger, [free('a', 'running')], 'the release')
      same((await commitOne(ledger, finish(first))).kind, 'stale', 'the end by the lease that it had')
      const [second] = await take(bench, ['a'])
      same(second.lease.fence, first.lease.fence + 1, 'the fence of the next lease')
      await applied(ledger, [finish(second, '1')], 'its end')
    },
  },
})
