import type { FailureGroup } from '../../../ports/inspect.js'
import type { ClaimedItem } from '../../../ports/item.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { byLease, complete, DAY, deadLetter, type LedgerBench, redrive } from './bench.js'
import { died, failed, listed, retried } from './inspect-bench.js'

export const failureClauses = clausesOn<LedgerBench>()({
  'ledger: groups failures by their fingerprint': {
    law: 'failures(limit) groups dead and retrying items by fingerprint, class and type, the largest first, with the first and last time and the last as a sample.',
    hint: 'whether the aggregate covers both states, and takes class, time and error of a retrying item from its last run.',
    needs: ['inspect'],
    async run(bench) {
      const { time } = bench
      same([...(await bench.inspect.failures(10))], [], 'the failures of nothing')
      const names = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1', 'ok', 'late'] as const
      const typeOf = (id: string) => (id === 'c1' ? 'pdf' : 'mail')
      await bench.apply(
        'the enqueues',
        names.map((id) => bench.enqueue(id, { type: typeOf(id) })),
      )
      const [a1, a2, a3, b1, b2, c1, d1, ok, late] = await bench.take(names, { leaseTicks: 10_000 })
      const t0 = time.clock.now()
      await bench.apply('two ends', [died(bench, a1, { fingerprint: 'fa' }), died(bench, c1, { fingerprint: 'fa' })])
      await time.pass(time.ms(1))
      const t1 = time.clock.now()
      await bench.apply('more of it', [
        retried(bench, a2, { fingerprint: 'fa' }),
        died(bench, b1, { fingerprint: 'fb' }),
        complete(ok, '1'),
        // Died of time, without a failed run.
        deadLetter(late, 'deadline exceeded'),
      ])
      await time.pass(time.ms(1))
      const t2 = time.clock.now()
      await bench.apply('the rest', [
        died(bench, a3, { fingerprint: 'fa', error: 'Error: the last of them' }),
        died(bench, b2, { fingerprint: 'fb' }),
        died(bench, d1, { fingerprint: 'fb', class: 'poison' }),
      ])
      const expected: FailureGroup[] = [
        {
          fingerprint: 'fa',
          class: 'retryable',
          type: 'mail',
          dead: 2,
          retrying: 1,
          firstAt: t0,
          lastAt: t2,
          sample: { id: 'a3', error: 'Error: the last of them' },
        },
        {
          fingerprint: 'fb',
          class: 'retryable',
          type: 'mail',
          dead: 2,
          retrying: 0,
          firstAt: t1,
          lastAt: t2,
          sample: { id: 'b2', error: 'Error: b2' },
        },
        {
          fingerprint: 'fb',
          class: 'poison',
          type: 'mail',
          dead: 1,
          retrying: 0,
          firstAt: t2,
          lastAt: t2,
          sample: { id: 'd1', error: 'Error: d1' },
        },
        {
          fingerprint: 'fa',
          class: 'retryable',
          type: 'pdf',
          dead: 1,
          retrying: 0,
          firstAt: t0,
          lastAt: t0,
          sample: { id: 'c1', error: 'Error: c1' },
        },
      ]
      // Where the time is the server's own, ends are a little later than they were asked for.
      const shown = (groups: readonly FailureGroup[]) =>
        groups.map((group) => {
          const { fingerprint, class: of, type, dead, retrying, firstAt, lastAt, sample } = group
          holds(firstAt <= lastAt, `a group begins before it ends (${firstAt}, ${lastAt})`)
          return [fingerprint, of, type, dead, retrying, { ...sample }, ...(time.exact ? [firstAt, lastAt] : [])]
        })
      same(shown(await bench.inspect.failures(10)), shown(expected), 'the groups')
      same(shown(await bench.inspect.failures(2)), shown(expected.slice(0, 2)), 'the two largest groups')
      const group = { state: 'dead', fingerprint: 'fb', class: 'poison', type: 'mail' } as const
      same(await listed(bench, group), ['d1'], 'the list of one group')
      await bench.apply(
        'two redrives',
        ['a1', 'a3'].map((id) => redrive(id)),
      )
      const after = (await bench.inspect.failures(10)).find((one) => one.fingerprint === 'fa' && one.type === 'mail')
      same(
        [after?.dead, after?.retrying, after?.sample.id, after?.sample.error],
        [0, 1, 'a2', 'Error: a2'],
        'dead, retrying and sample of a group whose dead ones were driven again',
      )
    },
  },
  'ledger: groups items that died without a failed run': {
    law: 'A `deadLetter` with a fingerprint puts its item into that group, whatever the fingerprint of its last run, and the item is listed and counted by it. A cancelled item is in no group.',
    hint: 'whether the fingerprint of `deadLetter` is stored with the item and indexed, and overrides that of the last attempt.',
    needs: ['inspect'],
    async run(bench) {
      const names = ['late1', 'late2', 'cut', 'plain', 'gone'] as const
      const [late1, late2, cut, plain, gone] = await bench.enqueueAndTake(names, {}, { leaseTicks: 10_000 })
      const ended = (claimed: ClaimedItem, ending: 'expired' | 'crashed' | 'cancelled', fingerprint: string) => {
        const { id, groupId } = claimed.envelope
        const error = `${ending} without a run`
        return byLease(claimed.lease, [
          ...(claimed === cut ? [failed(bench, claimed, { fingerprint: 'f-run' })] : []),
          { do: 'deadLetter', id, ending, class: 'poison', error, keepMs: DAY, fingerprint },
          { do: 'leaveGroup', groupId, count: 1 },
        ])
      }
      await bench.apply('the ends', [
        ended(late1, 'expired', 'f-late'),
        ended(late2, 'expired', 'f-late'),
        ended(cut, 'crashed', 'f-cut'),
        died(bench, plain, { fingerprint: 'f-run' }),
        ended(gone, 'cancelled', 'f-late'),
      ])
      const groups = async () =>
        (await bench.inspect.failures(10))
          .map(({ fingerprint, class: of, dead, sample }) => [fingerprint, of, dead, sample.error])
          .toSorted()
      same(
        await groups(),
        [
          ['f-cut', 'poison', 1, 'crashed without a run'],
          ['f-late', 'poison', 2, 'expired without a run'],
          ['f-run', 'retryable', 1, 'Error: plain'],
        ],
        'the groups',
      )
      same((await listed(bench, { state: 'dead', fingerprint: 'f-late' })).toSorted(), ['late1', 'late2'], 'one group')
      same(await bench.inspect.count({ state: 'dead', fingerprint: 'f-cut' }), 1, 'the size of one group')
      same(await listed(bench, { state: 'dead', fingerprint: 'f-run' }), ['plain'], 'the group of the last run')
      await bench.apply(
        'two redrives',
        ['late1', 'cut'].map((id) => redrive(id)),
      )
      const again = await bench.take(['late1', 'cut'], { leaseTicks: 10_000 })
      await bench.apply(
        'two ends of failed runs',
        again.map((claimed) => died(bench, claimed, { fingerprint: 'f-run' })),
      )
      same(
        (await groups()).map(([fingerprint, , dead]) => [fingerprint, dead]),
        [
          ['f-late', 1],
          ['f-run', 3],
        ],
        'the groups after the redriven items failed with another error',
      )
    },
  },
})
