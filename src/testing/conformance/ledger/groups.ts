import type { GroupValue, Settlement } from '../../../ports/settlement.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { byLease, commitOne, complete, DAY, deadLetter, type LedgerBench, retry, setGroupValue } from './bench.js'

const names = (n: number) => Array.from({ length: n }, (_, i) => `i${String(i).padStart(2, '0')}`)

async function enqueueEight(bench: LedgerBench, groupId: string): Promise<readonly string[]> {
  const all = names(8).map((id) => `${groupId} ${id}`)
  await bench.enqueueItems(all, { groupId })
  return all
}

/** The ends of eight items of a group, ready to be committed. */
async function eightOf(bench: LedgerBench, groupId: string): Promise<readonly Settlement[]> {
  const taken = await bench.take(await enqueueEight(bench, groupId))
  return taken.map((claimed) => complete(claimed))
}

export const groupClauses = clausesOn<LedgerBench>()({
  'ledger: changes to a group in one batch are summed': {
    law: 'Twenty enqueues into a group in one batch open it by twenty; twenty ends in one batch close it once.',
    hint: 'whether changes of a batch to one row overwrite each other.',
    async run(bench) {
      const all = names(20)
      await bench.enqueueItems(all, { groupId: 'g' })
      same(await bench.openCount('g'), 20, 'the open count')
      const taken = await bench.take(all)
      const ends = taken.map((claimed, i) => (i % 2 === 0 ? complete(claimed) : deadLetter(claimed)))
      same(await bench.apply('nineteen ends', ends.slice(0, 19)), [], 'groups closed by nineteen of twenty')
      same(await bench.openCount('g'), 1, 'the open count')
      same(await bench.apply('the last end', ends.slice(19)), [{ groupId: 'g' }], 'groups closed by the last')
      same(await bench.openCount('g'), 0, 'the open count at the end')
    },
  },
  'ledger: a group closes once, however many end together': {
    law: 'Of settlements that end the last items of a group, in one batch or concurrently, exactly one reports that it closed.',
    hint: 'whether reaching 0 is compared in the same step as the count.',
    async run(bench) {
      const together = await eightOf(bench, 'together')
      same(await bench.apply('eight ends in a batch', together), [{ groupId: 'together' }], 'groups closed by a batch')
      const atOnce = await eightOf(bench, 'concurrent')
      const closed = await Promise.all(atOnce.map((end) => bench.apply('an end', [end])))
      same(closed.flat(), [{ groupId: 'concurrent' }], 'groups closed by eight concurrent commits')
    },
  },
  'ledger: a group that several processes end closes once': {
    law: 'Of concurrent settlements by several processes, exactly one reports that the group closed.',
    hint: 'whether the count is moved by one atomic operation.',
    needs: ['increment'],
    async run(bench) {
      const other = await bench.again()
      await enqueueEight(bench, 'g')
      // Each process settles what it claimed.
      const mine = (await bench.claim({ max: 4 })).items
      const theirs = (await bench.claim({ max: 4, ledger: other })).items
      const closed = await Promise.all([
        ...mine.map((claimed) => bench.apply('an end', [complete(claimed)])),
        ...theirs.map((claimed) => bench.apply('an end', [complete(claimed)], other)),
      ])
      same(closed.flat(), [{ groupId: 'g' }], 'groups closed by four concurrent ends in each of two processes')
    },
  },
  'ledger: a group stays open while a child of it is open': {
    law: 'Children are counted before their parent settles: a group never closes while a descendant is open.',
    hint: 'whether the count is compared after all effects of a settlement.',
    async run(bench) {
      await bench.enqueueItems(['root'], { groupId: 'g' })
      let [parent] = await bench.take(['root'])
      for (const id of ['child', 'grandchild']) {
        // Closing first and opening after, within one settlement: only the sum counts.
        const settlement = byLease(parent.lease, [
          { do: 'complete', id: parent.lease.id, ending: 'completed', keepMs: 60_000 },
          { do: 'leaveGroup', groupId: 'g', count: 1 },
          { do: 'joinGroup', groupId: 'g', count: 1 },
          bench.enqueueEffect(id, { groupId: 'g', parent: parent.lease.id }),
        ])
        same(await bench.apply(`the end of ${parent.lease.id}`, [settlement]), [], 'groups closed by it')
        same(await bench.openCount('g'), 1, `the open count with ${id} open`)
        ;[parent] = await bench.take([id])
      }
      same(await bench.apply('the end of the last', [complete(parent)]), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: a group that one settlement closes and the next opens stays open': {
    law: 'Changes of a batch are summed before a count is compared with 0.',
    hint: 'when the count is compared: after the whole batch.',
    needs: ['native ledger'],
    async run(bench) {
      const [a] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      const batch = [complete(a), bench.enqueue('b', { groupId: 'g' })]
      same(await bench.apply('an end and an enqueue', batch), [], 'groups closed by the batch')
      same(await bench.openCount('g'), 1, 'the open count')
      const [b] = await bench.take(['b'])
      same(await bench.apply('the other end', [complete(b)]), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: a closed group is not kept forever': {
    law: 'The record of a group goes some time after its last item has ended; within three days here.',
    hint: 'whether the records of a group have an expiry once it is closed, and none before.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const both = ['closed', 'open'].map((groupId) => bench.enqueue(`in ${groupId}`, { groupId }))
      await bench.apply('two enqueues', both)
      const [closed] = await bench.take(['in closed', 'in open'], { leaseTicks: 600_000 })
      const value = setGroupValue('closed', '1', true)
      await bench.apply('an end', [complete(closed, '1', [value], time.ms(60))])
      await time.pass(time.ms(30))
      same((await ledger.groups(['closed']))[0]?.value, '1', 'its value while its item is kept')
      await time.pass(3 * DAY)
      same((await ledger.groups(['closed']))[0], undefined, 'the closed group, three days later')
    },
  },
  'ledger: an id that is used again has a new group': {
    law: 'Once an item and its group have gone, the same id begins anew: nothing of the old group is counted, kept or final.',
    hint: 'whether a group that has expired, but was not yet removed, is treated as a live one.',
    needs: ['exact time'],
    async run(bench) {
      const { ledger, time } = bench
      const said = (groupId: string, value: string) => setGroupValue(groupId, value, true)
      const root = () => bench.enqueue('root', { groupId: 'root' })
      const guest = (id: string) => bench.enqueue(id, { groupId: 'shared' })
      const alone = () => bench.enqueue('alone', { groupId: 'alone' })
      await bench.apply('three enqueues', [root(), guest('guest 1'), alone()])
      const [first, guest1, alone1] = await bench.take(['root', 'guest 1', 'alone'])
      const child = [
        { do: 'joinGroup', groupId: 'root', count: 1 } as const,
        bench.enqueueEffect('child', { groupId: 'root' }),
      ]
      await bench.apply('the end of the root', [complete(first, '1', child)])
      const [kid] = await bench.take(['child'])
      const ends = [
        complete(kid, '1', [said('root', '1')]),
        complete(guest1, '1', [said('shared', '1')]),
        complete(alone1, '1', [said('alone', '1')]),
      ]
      await bench.apply('the ends of all', ends)
      await time.pass(3 * DAY)
      same(await ledger.groups(['root', 'shared', 'alone']), [undefined, undefined, undefined], 'the groups, later')
      // No claim came since, so nothing needs to have been removed.
      await bench.apply('the enqueues of the second time', [
        root(),
        guest('guest 2'),
        bench.enqueue('guest 3', { groupId: 'alone' }),
      ])
      const now = await ledger.groups(['root', 'shared', 'alone'])
      same(
        now.map((group) => group && [group.open, group.value, group.final]),
        [1, 1, 1].map((open) => [open, undefined, false]),
        'the groups of the second time',
      )
      const [second, guest2, guest3] = await bench.take(['root', 'guest 2', 'guest 3'])
      const closed = await bench.apply('the ends of the second time', [
        complete(second, '2', [said('root', '2')]),
        complete(guest2, '2', [said('shared', '2')]),
        complete(guest3, '2', [said('alone', '2')]),
      ])
      same(
        closed.map(({ groupId, value }) => [groupId, value]).toSorted(),
        ['alone', 'root', 'shared'].map((groupId) => [groupId, '2']),
        'groups closed the second time, and their values',
      )
    },
  },
  'ledger: a retry leaves its group open': {
    law: 'Retries, deferrals and lapses change no group count.',
    hint: 'whether only ends move the count.',
    async run(bench) {
      const { time } = bench
      const [first] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      await bench.apply('the retry', [retry(first, 0)])
      await bench.take(['a'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [third] = await bench.take(['a'])
      same(await bench.openCount('g'), 1, 'the open count')
      same(await bench.apply('the end', [deadLetter(third)]), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: groups are separate': {
    law: 'A settlement moves the groups it names and no other.',
    hint: 'whether the group id is part of every change.',
    async run(bench) {
      const { ledger } = bench
      const groups = ['g', 'G', 'g ', 'g:open', 'h']
      await bench.apply(
        'enqueues into five groups',
        groups.map((groupId) => bench.enqueue(`in ${groupId}`, { groupId })),
      )
      const taken = await bench.take(groups.map((groupId) => `in ${groupId}`))
      same(await bench.apply('one end', [complete(taken[0]!)]), [{ groupId: 'g' }], 'groups closed by it')
      const counts = (await ledger.groups(groups)).map((group) => group?.open)
      same(counts, [0, 1, 1, 1, 1], 'the open counts')
    },
  },
  'ledger: the last value set is the value of the group': {
    law: 'A new group value replaces the last one; another value has another version; the close reports the value.',
    hint: 'whether the value is written in the order of the batch, before the close is answered.',
    async run(bench) {
      const { ledger } = bench
      const all = ['a', 'b', 'c']
      await bench.enqueueItems(all, { groupId: 'g' })
      const group = async () => {
        const { version, ...rest } = present((await ledger.groups(['g']))[0], 'the group')
        return { version, rest }
      }
      same(await group(), { version: 0, rest: { open: 3, final: false } }, 'the group before any value')
      const [a, b, c] = await bench.take(['a', 'b', 'c'])
      const value = (text: string) => setGroupValue('g', text)
      await bench.apply('the first end', [complete(a, '1', [value('"a"')])])
      const first = await group()
      same(first.rest, { open: 2, value: '"a"', final: false }, 'the group after one value')
      holds(first.version !== 0, 'a value changes the version')
      const closed = await bench.apply('two ends', [complete(b, '2', [value('"b"')]), complete(c, '3', [value('"c"')])])
      same(closed, [{ groupId: 'g', value: '"c"' }], 'the groups closed, with their value')
      const last = await group()
      same(last.rest, { open: 0, value: '"c"', final: false }, 'the group at the end')
      holds(last.version !== first.version, 'another value has another version')
    },
  },
  'ledger: the first final group value wins': {
    law: 'A final group value locks it: later values, final or not, are ignored, and their settlements applied.',
    hint: 'whether the lock is checked in the same step, also within one batch.',
    async run(bench) {
      const { ledger } = bench
      const all = ['a', 'b', 'c', 'd']
      await bench.enqueueItems(all, { groupId: 'g' })
      const [a, b, c, d] = await bench.take(['a', 'b', 'c', 'd'])
      const value = (text: string, final: boolean) => setGroupValue('g', text, final)
      const batch = [
        complete(a, '1', [value('"plain"', false)]),
        complete(b, '2', [value('"first final"', true)]),
        complete(c, '3', [value('"second final"', true)]),
      ]
      await bench.apply('three ends in one batch', batch)
      const closed = await bench.apply('a late one', [complete(d, '4', [value('"late"', false)])])
      same(closed, [{ groupId: 'g', value: '"first final"' }], 'the groups closed, with their value')
      const [group] = await ledger.groups(['g'])
      same([group?.value, group?.final], ['"first final"', true], 'value and lock at the end')
    },
  },
  'ledger: a watcher of an item does not watch its group': {
    law: '`closed` says `watched` only if an inbox is registered for the group, also for a group that has the id of its item.',
    hint: 'whether watchers of an item and of the group that lives on its row are kept apart.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      for (const [id, groupIds, watched] of [
        ['a', [], false],
        ['b', ['b'], true],
      ] as const) {
        await bench.apply('the enqueue', [bench.enqueue(id, { groupId: id })])
        await ledger.watch('inbox', { itemIds: [id], groupIds })
        const [claimed] = await bench.take([id])
        const closed = [{ groupId: id, ...(watched ? { watched } : {}) }]
        same(await commitOne(ledger, complete(claimed)), { kind: 'applied', closed }, `the end of ${id}`)
      }
    },
  },
  'ledger: a group value set with the first item is kept': {
    law: 'An enqueue may set the value of the group that it opens, also of a group that has the id of its item.',
    hint: 'whether a group that lives on its root has a place for a value.',
    needs: ['native ledger'],
    async run(bench) {
      const { ledger } = bench
      for (const groupId of ['g', 'a', 'b']) {
        const ifVersion = groupId === 'b' ? { ifVersion: 0 } : {}
        const value = { do: 'setGroupValue', groupId, value: '"said"', final: false, ...ifVersion } as const
        const id = groupId === 'g' ? 'root' : groupId
        await bench.apply('an enqueue that says a value', [bench.enqueue(id, { groupId }, {}, [value])])
        const [group] = await ledger.groups([groupId])
        same([group?.open, group?.value], [1, '"said"'], `open count and value of ${groupId}`)
        const [root] = await bench.take([id])
        same(await bench.apply('its end', [complete(root)]), [{ groupId, value: '"said"' }], 'the groups closed')
      }
    },
  },
  'ledger: a group value computed from an old version conflicts': {
    law: '`ifVersion` that is not the version answers `conflict` with the value now; nothing of that settlement happens.',
    hint: 'whether the version is compared before any effect, and within one batch too.',
    async run(bench) {
      const { ledger } = bench
      const all = ['a', 'b']
      await bench.enqueueItems(all, { groupId: 'g' })
      const [a, b] = await bench.take(['a', 'b'])
      const add = (value: string, ifVersion: number) =>
        ({ do: 'setGroupValue', groupId: 'g', value, final: false, ifVersion }) as const
      const child = bench.enqueue('child of b', { groupId: 'g' }).effects
      const results = await ledger.commit([complete(a, '1', [add('1', 0)]), complete(b, '2', [...child, add('1', 0)])])
      same(results[0]?.kind, 'applied', 'the first of two that folded on version 0')
      const { open: _, ...now } = present((await ledger.groups(['g']))[0], 'the group')
      same([now.value, now.final], ['1', false], 'value and lock after the first')
      same(results[1], { kind: 'conflict', groupId: 'g', now }, 'the second')
      same((await ledger.read(['child of b']))[0], undefined, 'the child of the one in conflict')
      same(
        [(await bench.view('b')).status, await bench.openCount('g')],
        ['running', 1],
        'its status, and the open count',
      )
      const again = await ledger.commit([complete(b, '2', [add('3', 0)]), complete(b, '2', [add('2', now.version)])])
      same(
        again.map(({ kind }) => kind),
        ['conflict', 'applied'],
        'the same lease twice in one batch, once on the old version and once folded again',
      )
      const [end] = await ledger.groups(['g'])
      same([end?.open, end?.value, end?.final], [0, '2', false], 'open count, value and lock at the end')
      await bench.nothingToClaim('at the end')
    },
  },
  'ledger: concurrent appends to a group value are all kept': {
    law: 'Twenty items that each add 1 to the value, folding again on conflict, make 20.',
    hint: 'whether two settlements can both be applied on one version.',
    async run(bench) {
      const { ledger } = bench
      const all = names(20)
      const taken = await bench.enqueueAndTake(all, { groupId: 'g' })
      const fold = async (index: number) => {
        let now: GroupValue = (await ledger.groups(['g']))[0] ?? { version: 0, final: false }
        for (let tries = 0; tries < 100; tries += 1) {
          const value = String(Number(now.value ?? '0') + 1)
          const effect = { do: 'setGroupValue', groupId: 'g', value, final: false, ifVersion: now.version } as const
          const result = await commitOne(ledger, complete(taken[index]!, value, [effect]))
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
