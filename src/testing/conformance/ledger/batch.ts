import type { Effect, Settlement } from '../../../ports/settlement.js'
import { same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  claim,
  DAY,
  enqueue,
  finish,
  gated,
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

/** Settlements of one batch that touch each other. One by one they would answer the same. */
export const batchClauses = clausesOn<LedgerBench>()({
  'ledger: a guard sees what the batch did before it': {
    law: 'In one batch a settlement answers as it would after those before it: also behind another lease of its item.',
    look: 'whether all guards of a batch are looked at before its first effect.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [first] = await take(bench, ['a'])
      await applied(ledger, [release(first)], 'a put-back')
      const [second] = await take(bench, ['a'])
      const results = await ledger.commit([retry(second, 0), retry(first, 0), release(second)])
      same(kinds(results), ['applied', 'stale', 'repeated'], 'the new lease, the old one, and the new one again')
      const [third] = await take(bench, ['a'])
      const child = push(bench, item(bench, 'child', { groupId: 'g' }))
      const open: Effect = { do: 'openGroup', groupId: 'g', by: 1 }
      const both = [finish(third, '1', [open, child]), enqueue(bench, item(bench, 'child', { groupId: 'h' }))]
      same(kinds(await ledger.commit(both)), ['applied', 'repeated'], 'a fan-out, and an enqueue of its child')
      same((await view(bench, 'child')).envelope.groupId, 'g', 'the group of the child')
      same([await openCount(bench, 'g'), await openCount(bench, 'h')], [1, undefined], 'the open counts')
      await take(bench, ['child'])
    },
  },
  'ledger: an item is born leased and settled in one batch': {
    law: 'Who pushes an item under its own lease may end it in the same batch.',
    look: 'whether the guard of the end finds an item that an earlier settlement of the batch pushed.',
    needs: ['born leased'],
    async run(bench) {
      const { ledger, time } = bench
      const heldBy = { worker: 'w1', token: 'token of a', leaseMs: time.ms(4) }
      const until = time.clock.now() + heldBy.leaseMs
      const lease = { id: 'a', queue: bench.queue, token: heldBy.token, fence: 1, until }
      const end = byLease(lease, [
        { do: 'finish', id: 'a', ending: 'done', result: '1', keepMs: DAY },
        { do: 'closeGroup', groupId: 'a', by: 1 },
      ])
      const results = await ledger.commit([enqueue(bench, item(bench, 'a', { groupId: 'a' }), { heldBy }), end])
      same(kinds(results), ['applied', 'applied'], 'the birth and the end')
      same([(await view(bench, 'a')).status, await openCount(bench, 'a')], ['success', 0], 'its status and its group')
      await time.pass(time.ms(5))
      await nothingToClaim(bench, 'after the lease would have ended')
    },
  },
  'ledger: a gate counts its members as the batch has left them': {
    law: 'A gate opened behind the redrive or the removal of a member waits for it; before either it counts its end.',
    look: 'in which order a batch opens gates, reopens and erases.',
    needs: ['native ledger', 'redrive and erase'],
    async run(bench) {
      const { ledger } = bench
      const dead = ['again', 'gone', 'counted']
      await applied(
        ledger,
        dead.map((id) => enqueue(bench, item(bench, id))),
        'three enqueues',
      )
      await applied(
        ledger,
        (await take(bench, dead)).map((claimed) => park(claimed)),
        'three deaths',
      )
      const byStatus = (id: string, effects: readonly Effect[]): Settlement => ({
        guard: { by: 'status', id, in: ['dead'] },
        effects,
      })
      const redrive = (id: string) =>
        byStatus(id, [
          { do: 'openGroup', groupId: `g-${id}`, by: 1 },
          { do: 'reopen', id, delayMs: 0 },
        ])
      const batch = [
        redrive('again'),
        gated(bench, 'after again', ['again'], { of: 'done' }),
        byStatus('gone', [{ do: 'erase', id: 'gone' }]),
        gated(bench, 'after gone', ['gone'], { of: 'done' }),
        gated(bench, 'after counted', ['counted'], { of: 'done' }),
        redrive('counted'),
      ]
      await applied(ledger, batch, 'two redrives, a removal, and a gate over each of the three')
      const found = ids((await claim(bench)).items)
      same(found.toSorted(), ['after counted', 'again', 'counted'], 'the items claimed')
    },
  },
  'ledger: a settlement that makes no sense fails alone': {
    law: 'A settlement with an effect that nobody knows, or without its fields, answers `failed`; its neighbours are applied.',
    look: 'whether what is read from each settlement is read before anything of the batch is written.',
    async run(bench) {
      const { ledger } = bench
      const nonsense = (effect: object): Settlement => ({
        guard: { by: 'absent', id: 'x' },
        // No type allows it: it stands for a caller without types, or a newer one.
        effects: [{ do: 'openGroup', groupId: 'g', by: 1 }, effect as Effect],
      })
      const results = await ledger.commit([
        enqueue(bench, item(bench, 'a')),
        nonsense({ do: 'unheard of' }),
        nonsense({ do: 'push' }),
        enqueue(bench, item(bench, 'b')),
      ])
      same(kinds(results), ['applied', 'failed', 'failed', 'applied'], 'the results')
      same(await openCount(bench, 'g'), undefined, 'the group that they would have opened')
      await take(bench, ['a', 'b'])
    },
  },
})
