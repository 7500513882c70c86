import type { GroupValue, Settlement } from '../../../ports/settlement.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  byLease,
  claim,
  commitOne,
  DAY,
  enqueue,
  finish,
  item,
  type LedgerBench,
  nothingToClaim,
  openCount,
  park,
  push,
  retry,
  take,
  view,
} from './bench.js'

const names = (n: number) => Array.from({ length: n }, (_, i) => `i${String(i).padStart(2, '0')}`)

async function enqueueEight(bench: LedgerBench, groupId: string): Promise<readonly string[]> {
  const all = names(8).map((id) => `${groupId} ${id}`)
  await applied(
    bench.ledger,
    all.map((id) => enqueue(bench, item(bench, id, { groupId }))),
    'eight enqueues',
  )
  return all
}

/** The ends of eight items of a group, ready to be committed. */
async function eightOf(bench: LedgerBench, groupId: string): Promise<readonly Settlement[]> {
  const taken = await take(bench, await enqueueEight(bench, groupId))
  return taken.map((claimed) => finish(claimed))
}

export const groupClauses = clausesOn<LedgerBench>()({
  'ledger: changes to a group in one batch are summed': {
    law: 'Twenty enqueues into a group in one batch open it by twenty; twenty ends in one batch close it once.',
    look: 'whether changes of a batch to one row overwrite each other.',
    async run(bench) {
      const { ledger } = bench
      const all = names(20)
      await applied(
        ledger,
        all.map((id) => enqueue(bench, item(bench, id, { groupId: 'g' }))),
        'twenty enqueues',
      )
      same(await openCount(bench, 'g'), 20, 'the open count')
      const taken = await take(bench, all)
      const ends = taken.map((claimed, i) => (i % 2 === 0 ? finish(claimed) : park(claimed)))
      same(await applied(ledger, ends.slice(0, 19), 'nineteen ends'), [], 'groups closed by nineteen of twenty')
      same(await openCount(bench, 'g'), 1, 'the open count')
      same(await applied(ledger, ends.slice(19), 'the last end'), [{ groupId: 'g' }], 'groups closed by the last')
      same(await openCount(bench, 'g'), 0, 'the open count at the end')
    },
  },
  'ledger: a group closes once, however many end together': {
    law: 'Of settlements that end the last items of a group, in one batch or at once, exactly one tells that it closed.',
    look: 'whether reaching 0 is compared in the same step as the count.',
    async run(bench) {
      const { ledger } = bench
      const together = await eightOf(bench, 'together')
      same(
        await applied(ledger, together, 'eight ends in a batch'),
        [{ groupId: 'together' }],
        'groups closed by a batch',
      )
      const atOnce = await eightOf(bench, 'at once')
      const closed = await Promise.all(atOnce.map((end) => applied(ledger, [end], 'an end')))
      same(closed.flat(), [{ groupId: 'at once' }], 'groups closed by eight commits at once')
    },
  },
  'ledger: a group that several processes end closes once': {
    law: 'Of settlements by several processes at once, exactly one tells that the group closed.',
    look: 'whether the count is moved by one atomic operation.',
    needs: ['increment'],
    async run(bench) {
      const { ledger } = bench
      const other = await bench.again()
      await enqueueEight(bench, 'g')
      // Each process settles what it claimed.
      const mine = (await claim(bench, { max: 4 })).items
      const theirs = (await claim(bench, { max: 4, ledger: other })).items
      const closed = await Promise.all([
        ...mine.map((claimed) => applied(ledger, [finish(claimed)], 'an end')),
        ...theirs.map((claimed) => applied(other, [finish(claimed)], 'an end')),
      ])
      same(closed.flat(), [{ groupId: 'g' }], 'groups closed by four ends in each of two processes, at once')
    },
  },
  'ledger: a group stays open while a child of it is open': {
    law: 'Children are counted before their parent settles: a group never closes while a descendant is open.',
    look: 'whether the count is compared after all effects of a settlement.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'root', { groupId: 'g' }))], 'the enqueue')
      let [parent] = await take(bench, ['root'])
      for (const id of ['child', 'grandchild']) {
        // Closing first and opening after, within one settlement: only the sum counts.
        const settlement = byLease(parent.lease, [
          { do: 'finish', id: parent.lease.id, ending: 'done', keepMs: 60_000 },
          { do: 'closeGroup', groupId: 'g', by: 1 },
          { do: 'openGroup', groupId: 'g', by: 1 },
          push(bench, item(bench, id, { groupId: 'g', parent: parent.lease.id })),
        ])
        same(await applied(ledger, [settlement], `the end of ${parent.lease.id}`), [], 'groups closed by it')
        same(await openCount(bench, 'g'), 1, `the open count with ${id} open`)
        ;[parent] = await take(bench, [id])
      }
      same(await applied(ledger, [finish(parent)], 'the end of the last'), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: a group that one settlement closes and the next opens stays open': {
    law: 'Changes of a batch are summed before a count is compared with 0.',
    look: 'when the count is compared: after the whole batch.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      const batch = [finish(a), enqueue(bench, item(bench, 'b', { groupId: 'g' }))]
      same(await applied(ledger, batch, 'an end and an enqueue'), [], 'groups closed by the batch')
      same(await openCount(bench, 'g'), 1, 'the open count')
      const [b] = await take(bench, ['b'])
      same(await applied(ledger, [finish(b)], 'the other end'), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: a closed group is not kept for ever': {
    law: 'The record of a group goes some time after its last item has ended; within three days here.',
    look: 'whether the records of a group have an expiry once it is closed, and none before.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const both = ['closed', 'open'].map((groupId) => enqueue(bench, item(bench, `in ${groupId}`, { groupId })))
      await applied(ledger, both, 'two enqueues')
      const [closed] = await take(bench, ['in closed', 'in open'], { leaseTicks: 600_000 })
      const value = { do: 'contribute', groupId: 'closed', value: '1', final: true } as const
      await applied(ledger, [finish(closed, '1', [value], time.ms(60))], 'an end')
      await time.pass(time.ms(30))
      same((await ledger.groups(['closed']))[0]?.value, '1', 'its value while its item is kept')
      await time.pass(3 * DAY)
      same((await ledger.groups(['closed']))[0], undefined, 'the closed group, three days later')
    },
  },
  'ledger: an id that is used again has a new group': {
    law: 'Once an item and its group have gone, the same id begins anew: nothing of the old group is counted, kept or final.',
    look: 'whether a group that has expired, but was not yet removed, is taken for one that is there.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const said = (groupId: string, value: string) => ({ do: 'contribute', groupId, value, final: true }) as const
      const root = () => enqueue(bench, item(bench, 'root', { groupId: 'root' }))
      const guest = (id: string) => enqueue(bench, item(bench, id, { groupId: 'shared' }))
      const alone = () => enqueue(bench, item(bench, 'alone', { groupId: 'alone' }))
      await applied(ledger, [root(), guest('guest 1'), alone()], 'three enqueues')
      const [first, guest1, alone1] = await take(bench, ['root', 'guest 1', 'alone'])
      const child = [
        { do: 'openGroup', groupId: 'root', by: 1 } as const,
        push(bench, item(bench, 'child', { groupId: 'root' })),
      ]
      await applied(ledger, [finish(first, '1', child)], 'the end of the root')
      const [kid] = await take(bench, ['child'])
      const ends = [
        finish(kid, '1', [said('root', '1')]),
        finish(guest1, '1', [said('shared', '1')]),
        finish(alone1, '1', [said('alone', '1')]),
      ]
      await applied(ledger, ends, 'the ends of all')
      await time.pass(3 * DAY)
      same(await ledger.groups(['root', 'shared', 'alone']), [undefined, undefined, undefined], 'the groups, later')
      // Nobody has claimed since, so nothing needs to have been removed.
      await applied(
        ledger,
        [root(), guest('guest 2'), enqueue(bench, item(bench, 'guest 3', { groupId: 'alone' }))],
        'the enqueues of the second time',
      )
      const now = await ledger.groups(['root', 'shared', 'alone'])
      same(
        now.map((group) => group && [group.open, group.value, group.final]),
        [1, 1, 1].map((open) => [open, undefined, false]),
        'the groups of the second time',
      )
      const [second, guest2, guest3] = await take(bench, ['root', 'guest 2', 'guest 3'])
      const closed = await applied(
        ledger,
        [
          finish(second, '2', [said('root', '2')]),
          finish(guest2, '2', [said('shared', '2')]),
          finish(guest3, '2', [said('alone', '2')]),
        ],
        'the ends of the second time',
      )
      same(
        closed.map(({ groupId, value }) => [groupId, value]).toSorted(),
        ['alone', 'root', 'shared'].map((groupId) => [groupId, '2']),
        'groups closed the second time, and their values',
      )
    },
  },
  'ledger: a retry leaves its group open': {
    law: 'Retries, deferrals and lapses change no group count.',
    look: 'whether only ends move the count.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [first] = await take(bench, ['a'])
      await applied(ledger, [retry(first, 0)], 'the retry')
      await take(bench, ['a'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [third] = await take(bench, ['a'])
      same(await openCount(bench, 'g'), 1, 'the open count')
      same(await applied(ledger, [park(third)], 'the end'), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: groups are separate': {
    law: 'A settlement moves the groups it names and no other.',
    look: 'whether the group id is part of every change.',
    async run(bench) {
      const { ledger } = bench
      const groups = ['g', 'G', 'g ', 'g:open', 'h']
      await applied(
        ledger,
        groups.map((groupId) => enqueue(bench, item(bench, `in ${groupId}`, { groupId }))),
        'enqueues into five groups',
      )
      const taken = await take(
        bench,
        groups.map((groupId) => `in ${groupId}`),
      )
      same(await applied(ledger, [finish(taken[0]!)], 'one end'), [{ groupId: 'g' }], 'groups closed by it')
      const counts = (await ledger.groups(groups)).map((group) => group?.open)
      same(counts, [0, 1, 1, 1, 1], 'the open counts')
    },
  },
  'ledger: the last contribution is the value of the group': {
    law: 'Contributions overwrite each other; another value has another version; the value is told with the close.',
    look: 'whether the value is written in the order of the batch, before the close is answered.',
    async run(bench) {
      const { ledger } = bench
      const all = ['a', 'b', 'c']
      await applied(
        ledger,
        all.map((id) => enqueue(bench, item(bench, id, { groupId: 'g' }))),
        'three enqueues',
      )
      const group = async () => {
        const { version, ...rest } = present((await ledger.groups(['g']))[0], 'the group')
        return { version, rest }
      }
      same(await group(), { version: 0, rest: { open: 3, final: false } }, 'the group before any contribution')
      const [a, b, c] = await take(bench, ['a', 'b', 'c'])
      const value = (text: string) => ({ do: 'contribute', groupId: 'g', value: text, final: false }) as const
      await applied(ledger, [finish(a, '1', [value('"a"')])], 'the first end')
      const first = await group()
      same(first.rest, { open: 2, value: '"a"', final: false }, 'the group after one contribution')
      holds(first.version !== 0, 'a contribution moves the version')
      const closed = await applied(ledger, [finish(b, '2', [value('"b"')]), finish(c, '3', [value('"c"')])], 'two ends')
      same(closed, [{ groupId: 'g', value: '"c"' }], 'the groups closed, with their value')
      const last = await group()
      same(last.rest, { open: 0, value: '"c"', final: false }, 'the group at the end')
      holds(last.version !== first.version, 'another value has another version')
    },
  },
  'ledger: the first final contribution wins': {
    law: 'A final contribution locks the value: later ones, final or not, are ignored, and their settlements applied.',
    look: 'whether the lock is checked in the same step, also within one batch.',
    async run(bench) {
      const { ledger } = bench
      const all = ['a', 'b', 'c', 'd']
      await applied(
        ledger,
        all.map((id) => enqueue(bench, item(bench, id, { groupId: 'g' }))),
        'four enqueues',
      )
      const [a, b, c, d] = await take(bench, ['a', 'b', 'c', 'd'])
      const value = (text: string, final: boolean) => ({ do: 'contribute', groupId: 'g', value: text, final }) as const
      const batch = [
        finish(a, '1', [value('"plain"', false)]),
        finish(b, '2', [value('"first final"', true)]),
        finish(c, '3', [value('"second final"', true)]),
      ]
      await applied(ledger, batch, 'three ends in one batch')
      const closed = await applied(ledger, [finish(d, '4', [value('"late"', false)])], 'a late one')
      same(closed, [{ groupId: 'g', value: '"first final"' }], 'the groups closed, with their value')
      const [group] = await ledger.groups(['g'])
      same([group?.value, group?.final], ['"first final"', true], 'value and lock at the end')
    },
  },
  'ledger: who waits for an item does not wait for its group': {
    law: '`closed` says `watched` only if somebody registered for the group, also for one that has the name of its item.',
    look: 'whether watchers of an item and of the group that lives on its row are told apart.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      for (const [id, groups, watched] of [
        ['a', [], false],
        ['b', ['b'], true],
      ] as const) {
        await applied(ledger, [enqueue(bench, item(bench, id, { groupId: id }))], 'the enqueue')
        await ledger.watch('inbox', { ids: [id], groups })
        const [claimed] = await take(bench, [id])
        const closed = [{ groupId: id, ...(watched ? { watched } : {}) }]
        same(await commitOne(ledger, finish(claimed)), { kind: 'applied', closed }, `the end of ${id}`)
      }
    },
  },
  'ledger: what is said with the first item of a group is kept': {
    law: 'An enqueue may contribute to the group that it opens, also to one that has the name of its item.',
    look: 'whether a group that lives on its root has a place for a value.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      for (const groupId of ['g', 'a', 'b']) {
        const expect = groupId === 'b' ? { expect: 0 } : {}
        const value = { do: 'contribute', groupId, value: '"said"', final: false, ...expect } as const
        const id = groupId === 'g' ? 'root' : groupId
        await applied(
          ledger,
          [enqueue(bench, item(bench, id, { groupId }), {}, [value])],
          'an enqueue that says a value',
        )
        const [group] = await ledger.groups([groupId])
        same([group?.open, group?.value], [1, '"said"'], `open count and value of ${groupId}`)
        const [root] = await take(bench, [id])
        same(await applied(ledger, [finish(root)], 'its end'), [{ groupId, value: '"said"' }], 'the groups closed')
      }
    },
  },
  'ledger: a contribution folded on an old version conflicts': {
    law: '`expect` that is not the version answers `conflict` with the value now; nothing of that settlement happens.',
    look: 'whether the version is compared before any effect, and within one batch too.',
    async run(bench) {
      const { ledger } = bench
      const all = ['a', 'b']
      await applied(
        ledger,
        all.map((id) => enqueue(bench, item(bench, id, { groupId: 'g' }))),
        'two enqueues',
      )
      const [a, b] = await take(bench, ['a', 'b'])
      const add = (value: string, expect: number) =>
        ({ do: 'contribute', groupId: 'g', value, final: false, expect }) as const
      const child = enqueue(bench, item(bench, 'child of b', { groupId: 'g' })).effects
      const results = await ledger.commit([finish(a, '1', [add('1', 0)]), finish(b, '2', [...child, add('1', 0)])])
      same(results[0]?.kind, 'applied', 'the first of two that folded on version 0')
      const { open: _, ...now } = present((await ledger.groups(['g']))[0], 'the group')
      same([now.value, now.final], ['1', false], 'value and lock after the first')
      same(results[1], { kind: 'conflict', groupId: 'g', now }, 'the second')
      same((await ledger.read(['child of b']))[0], undefined, 'the child of the one in conflict')
      same(
        [(await view(bench, 'b')).status, await openCount(bench, 'g')],
        ['running', 1],
        'its status, and the open count',
      )
      const again = await ledger.commit([finish(b, '2', [add('3', 0)]), finish(b, '2', [add('2', now.version)])])
      same(
        again.map(({ kind }) => kind),
        ['conflict', 'applied'],
        'the same lease twice in one batch, once on the old version and once folded again',
      )
      const [end] = await ledger.groups(['g'])
      same([end?.open, end?.value, end?.final], [0, '2', false], 'open count, value and lock at the end')
      await nothingToClaim(bench, 'at the end')
    },
  },
  'ledger: appends at once are all folded': {
    law: 'Twenty items that each add 1 to the value, folding again on conflict, make 20.',
    look: 'whether two settlements can both be applied on one version.',
    async run(bench) {
      const { ledger } = bench
      const all = names(20)
      await applied(
        ledger,
        all.map((id) => enqueue(bench, item(bench, id, { groupId: 'g' }))),
        'twenty enqueues',
      )
      const taken = await take(bench, all)
      const fold = async (index: number) => {
        let now: GroupValue = (await ledger.groups(['g']))[0] ?? { version: 0, final: false }
        for (let tries = 0; tries < 100; tries += 1) {
          const value = String(Number(now.value ?? '0') + 1)
          const effect = { do: 'contribute', groupId: 'g', value, final: false, expect: now.version } as const
          const result = await commitOne(ledger, finish(taken[index]!, value, [effect]))
          if (result.kind !== 'conflict') return result.kind
          now = result.now
        }
        return 'conflict'
      }
      const done = await Promise.all(taken.map((_, i) => fold(i)))
      same(
        done.filter((kind) => kind === 'applied').length,
        20,
        'appends that were applied within a hundred tries each',
      )
      same((await ledger.groups(['g']))[0]?.value, '20', 'the value')
    },
  },
})
