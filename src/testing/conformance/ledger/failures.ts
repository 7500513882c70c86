import type { Claimed } from '../../../ports/item.js'
import type { FailureGroup } from '../../../ports/ledger.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { applied, byLease, DAY, enqueue, finish, item, type LedgerBench, park, take } from './bench.js'
import { died, failed, power, retried } from './failing.js'
import { listed } from './listing.js'

export const failureClauses = clausesOn<LedgerBench>()({
  'ledger: groups failures by what they failed of': {
    law: 'failures(limit) groups dead and retrying items by fingerprint, class and type, the largest first, with the first and last time and the last as a sample.',
    look: 'whether the aggregate covers both states, and takes class, time and error of a retrying item from its last run.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      same([...(await power(bench, 'failures')(10))], [], 'the failures of nothing')
      const names = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1', 'ok', 'late'] as const
      const typeOf = (id: string) => (id === 'c1' ? 'pdf' : 'mail')
      await applied(
        ledger,
        names.map((id) => enqueue(bench, item(bench, id, { type: typeOf(id) }))),
        'the enqueues',
      )
      const [a1, a2, a3, b1, b2, c1, d1, ok, late] = await take(bench, names, { leaseTicks: 10_000 })
      const t0 = time.clock.now()
      await applied(
        ledger,
        [died(bench, a1, { fingerprint: 'fa' }), died(bench, c1, { fingerprint: 'fa' })],
        'two ends',
      )
      await time.pass(time.ms(1))
      const t1 = time.clock.now()
      await applied(
        ledger,
        [
          retried(bench, a2, { fingerprint: 'fa' }),
          died(bench, b1, { fingerprint: 'fb' }),
          finish(ok, '1'),
          // Died of time, without a failed run.
          park(late, 'deadline exceeded'),
        ],
        'more of it',
      )
      await time.pass(time.ms(1))
      const t2 = time.clock.now()
      await applied(
        ledger,
        [
          died(bench, a3, { fingerprint: 'fa', error: 'Error: the last of them' }),
          died(bench, b2, { fingerprint: 'fb' }),
          died(bench, d1, { fingerprint: 'fb', class: 'poison' }),
        ],
        'the rest',
      )
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
      same(shown(await power(bench, 'failures')(10)), shown(expected), 'the groups')
      same(shown(await power(bench, 'failures')(2)), shown(expected.slice(0, 2)), 'the two largest groups')
      const group = { state: 'dead', fingerprint: 'fb', class: 'poison', type: 'mail' } as const
      same(await listed(bench, group), ['d1'], 'the list of one group')
      await applied(
        ledger,
        ['a1', 'a3'].map((id) => ({
          guard: { by: 'status', id, in: ['dead'] },
          effects: [
            { do: 'openGroup', groupId: `g-${id}`, by: 1 },
            { do: 'reopen', id, delayMs: 0 },
          ],
        })),
        'two redrives',
      )
      const after = (await power(bench, 'failures')(10)).find((one) => one.fingerprint === 'fa' && one.type === 'mail')
      same(
        [after?.dead, after?.retrying, after?.sample.id, after?.sample.error],
        [0, 1, 'a2', 'Error: a2'],
        'dead, retrying and sample of a group whose dead ones were driven again',
      )
    },
  },
  'ledger: groups what died without a failed run': {
    law: 'A park that brings a fingerprint puts its item into that group, also over that of its last run; it is listed and counted by it. A cancelled one is in no group.',
    look: 'whether the fingerprint of `park` is stored with the item and indexed, above that of the last attempt.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger } = bench
      const names = ['late1', 'late2', 'cut', 'plain', 'gone'] as const
      await applied(
        ledger,
        names.map((id) => enqueue(bench, item(bench, id))),
        'the enqueues',
      )
      const [late1, late2, cut, plain, gone] = await take(bench, names, { leaseTicks: 10_000 })
      const ended = (claimed: Claimed, ending: 'expired' | 'crashed' | 'cancelled', fingerprint: string) => {
        const { id, groupId } = claimed.envelope
        const error = `${ending} without a run`
        return byLease(claimed.lease, [
          ...(claimed === cut ? [failed(bench, claimed, { fingerprint: 'f-run' })] : []),
          { do: 'park', id, ending, class: 'poison', error, keepMs: DAY, fingerprint },
          { do: 'closeGroup', groupId, by: 1 },
        ])
      }
      await applied(
        ledger,
        [
          ended(late1, 'expired', 'f-late'),
          ended(late2, 'expired', 'f-late'),
          ended(cut, 'crashed', 'f-cut'),
          died(bench, plain, { fingerprint: 'f-run' }),
          ended(gone, 'cancelled', 'f-late'),
        ],
        'the ends',
      )
      const groups = async () =>
        (await power(bench, 'failures')(10))
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
      same(await power(bench, 'count')({ state: 'dead', fingerprint: 'f-cut' }), 1, 'the size of one group')
      same(await listed(bench, { state: 'dead', fingerprint: 'f-run' }), ['plain'], 'the group of the last run')
      await applied(
        ledger,
        ['late1', 'cut'].map((id) => ({
          guard: { by: 'status', id, in: ['dead'] },
          effects: [
            { do: 'openGroup', groupId: `g-${id}`, by: 1 },
            { do: 'reopen', id, delayMs: 0 },
          ],
        })),
        'two redrives',
      )
      const again = await take(bench, ['late1', 'cut'], { leaseTicks: 10_000 })
      await applied(
        ledger,
        again.map((claimed) => died(bench, claimed, { fingerprint: 'f-run' })),
        'two ends of failed runs',
      )
      same(
        (await groups()).map(([fingerprint, , dead]) => [fingerprint, dead]),
        [
          ['f-late', 1],
          ['f-run', 3],
        ],
        'the groups after those redriven failed of something else',
      )
    },
  },
})
