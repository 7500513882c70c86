import type { Effect, Settlement } from '../../../ports/settlement.js'
import { same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  byLease,
  byStatus,
  complete,
  DAY,
  deadLetter,
  ids,
  kinds,
  type LedgerBench,
  redrive,
  release,
  retry,
} from './bench.js'

/** Settlements of one batch that touch each other. One by one they would answer the same. */
export const batchClauses = clausesOn<LedgerBench>()({
  'ledger: a guard sees what the batch did before it': {
    law: 'In one batch a settlement answers as it would after those before it: also behind another lease of its item.',
    hint: 'whether all guards of a batch are evaluated before its first effect.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      const [first] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      await bench.apply('a release', [release(first)])
      const [second] = await bench.take(['a'])
      const results = await ledger.commit([retry(second, 0), retry(first, 0), release(second)])
      same(kinds(results), ['applied', 'stale', 'repeated'], 'the new lease, the old one, and the new one again')
      const [third] = await bench.take(['a'])
      const child = bench.enqueueEffect('child', { groupId: 'g' })
      const open: Effect = { do: 'joinGroup', groupId: 'g', count: 1 }
      const both = [complete(third, '1', [open, child]), bench.enqueue('child', { groupId: 'h' })]
      same(kinds(await ledger.commit(both)), ['applied', 'repeated'], 'a fan-out, and an enqueue of its child')
      same((await bench.view('child')).envelope.groupId, 'g', 'the group of the child')
      same([await bench.openCount('g'), await bench.openCount('h')], [1, undefined], 'the open counts')
      await bench.take(['child'])
    },
  },
  'ledger: an end keeps its place in its batch': {
    law: 'What a batch does before and behind the end of an item that is alone in its group counts as it stands there.',
    hint: 'whether ends of such items are written before the rest of the batch, or by a shorter way that does not look at it.',
    needs: ['native ledger', 'redrive and delete'],
    async run(bench) {
      const { ledger } = bench
      const born = async (id: string) => (await bench.enqueueAndTake([id], { groupId: id }))[0]
      const answers = async (...batch: readonly Settlement[]) => kinds(await ledger.commit(batch))
      const twice = await born('twice')
      same(await answers(complete(twice, '1'), complete(twice, '1')), ['applied', 'repeated'], 'the same end twice')
      const gone = await born('gone')
      const removal = byStatus('gone', 'running', [{ do: 'delete', id: 'gone' }])
      same(await answers(removal, complete(gone, '1')), ['applied', 'stale'], 'an end behind a removal')
      for (const where of ['before', 'behind']) {
        const parent = await born(`with one ${where}`)
        const { id } = parent.envelope
        const child = bench.enqueue(`child ${where}`, { groupId: id })
        const batch = where === 'before' ? [child, complete(parent)] : [complete(parent), child]
        same(await bench.apply('an end and a child', batch), [], `groups closed by an end, with a child ${where} it`)
        same(await bench.openCount(id), 1, `the open count of the group with a child ${where} the end`)
        await bench.take([`child ${where}`])
      }
    },
  },
  'ledger: an item is born leased and settled in one batch': {
    law: 'A caller that enqueues an item under its own lease may end it in the same batch.',
    hint: 'whether the guard of the end finds an item that an earlier settlement of the batch enqueued.',
    needs: ['born leased'],
    async run(bench) {
      const { ledger, time } = bench
      const leasedTo = { worker: 'w1', token: 'token of a', leaseMs: time.ms(4) }
      const until = time.clock.now() + leasedTo.leaseMs
      const lease = { id: 'a', queue: bench.queue, token: leasedTo.token, fence: 1, until }
      const end = byLease(lease, [
        { do: 'complete', id: 'a', ending: 'completed', result: '1', keepMs: DAY },
        { do: 'leaveGroup', groupId: 'a', count: 1 },
      ])
      const results = await ledger.commit([bench.enqueue('a', { groupId: 'a' }, { leasedTo }), end])
      same(kinds(results), ['applied', 'applied'], 'the birth and the end')
      same([(await bench.view('a')).status, await bench.openCount('a')], ['completed', 0], 'its status and its group')
      await time.pass(time.ms(5))
      await bench.nothingToClaim('after the lease would have ended')
    },
  },
  'ledger: a gate counts its members as the batch has left them': {
    law: 'A gate opened behind the redrive or the removal of a member waits for it; before either it counts its end.',
    hint: 'in which order a batch opens gates, redrives and deletes.',
    needs: ['native ledger', 'redrive and delete'],
    async run(bench) {
      const dead = ['again', 'gone', 'counted']
      await bench.enqueueItems(dead)
      await bench.apply(
        'three deaths',
        (await bench.take(dead)).map((claimed) => deadLetter(claimed)),
      )
      const batch = [
        redrive('again'),
        bench.gated('after again', ['again'], { of: 'done' }),
        byStatus('gone', 'dead', [{ do: 'delete', id: 'gone' }]),
        bench.gated('after gone', ['gone'], { of: 'done' }),
        bench.gated('after counted', ['counted'], { of: 'done' }),
        redrive('counted'),
      ]
      await bench.apply('two redrives, a removal, and a gate over each of the three', batch)
      const found = ids((await bench.claim()).items)
      same(found.toSorted(), ['after counted', 'again', 'counted'], 'the items claimed')
    },
  },
  'ledger: an invalid settlement fails and its neighbours are applied': {
    law: 'A settlement with an unknown effect, or without its fields, answers `failed`; its neighbours are applied.',
    hint: 'whether what is read from each settlement is read before anything of the batch is written.',
    async run(bench) {
      const { ledger } = bench
      const nonsense = (effect: object): Settlement => ({
        guard: { by: 'absent', id: 'x' },
        // No type allows it: it stands for a caller without types, or a newer one.
        effects: [{ do: 'joinGroup', groupId: 'g', count: 1 }, effect as Effect],
      })
      const results = await ledger.commit([
        bench.enqueue('a'),
        nonsense({ do: 'unheard of' }),
        nonsense({ do: 'enqueue' }),
        bench.enqueue('b'),
      ])
      same(kinds(results), ['applied', 'failed', 'failed', 'applied'], 'the results')
      same(await bench.openCount('g'), undefined, 'the group that they would have opened')
      await bench.take(['a', 'b'])
    },
  },
})
