import { expect, it, onTestFinished } from 'vitest'
import type { ClaimedItem } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../../src/ports/settlement.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ask, contribute, enqueue, finish, item, times } from '../settlements.js'
import { ledgerOn, openFile } from './open-file.js'

/** Changes nothing, and is no part of a settlement that has a short way. */
const ASIDE: Effect = { do: 'notify', inbox: 'none', ids: [] }

const DAY = 86_400_000

function open() {
  const clock = new FakeClock()
  const backend = openFile({ clock })
  onTestFinished(() => backend.close())
  return { clock, ledger: ledgerOn(backend) }
}

/** Two ledgers that are given the same: one can take the short way, the other has to take the general one. */
function pair() {
  const [short, general] = [open(), open()]
  const commit = async (batchOf: (which: 0 | 1) => readonly Settlement[]): Promise<readonly CommitResult[]> => {
    const results = await short.ledger.commit(batchOf(0))
    const slowly = batchOf(1).map(({ guard, effects }) => ({ guard, effects: [...effects, ASIDE] }))
    expect(results).toEqual(await general.ledger.commit(slowly))
    return results
  }
  const both = async <T>(of: (ledger: Ledger) => Promise<T>): Promise<readonly [T, T]> => [
    await of(short.ledger),
    await of(general.ledger),
  ]
  const pass = (ms: number) => Promise.all([short.clock.advance(ms), general.clock.advance(ms)])
  return { commit, both, pass }
}

const ended = (claimed: ClaimedItem, more: readonly Effect[] = [], result?: string): Settlement => {
  const { id } = claimed.envelope
  const was = { attempt: 1, startedAt: 5, endedAt: 7, worker: 'w' }
  const settlement = finish(claimed, more, result)
  return { ...settlement, effects: [{ do: 'recordAttempt', id, was }, ...settlement.effects] }
}

/** All that can be seen of these items, without tokens and fences. */
const seen = (ids: readonly string[]) => async (ledger: Ledger) => ({
  views: await ledger.read(ids),
  groups: await ledger.groups(ids),
  attempts: await Promise.all(ids.map((id) => ledger.inspect!.attempts(id))),
  counts: await ledger.inspect!.counts(),
})

it('enqueues roots as the general way does, also among ids that exist, have expired or come twice', async () => {
  const { commit, both, pass } = pair()
  const ids = times(150, (i) => `i${i}`)
  await commit(() => ['i3', 'i70', 'i140'].map((id) => enqueue(item(id))))
  const first = await both((ledger) => ledger.claim(ask(2)))
  await commit((which) => first[which].items.map((claimed) => ended(claimed)))
  // The first two are over, and not yet removed: their ids are free.
  await pass(DAY)

  const retry = Object.freeze({ attempts: 3, base: 1, factor: 2, max: 9, jitter: 0 })
  const batch = ids.map((id, i) => enqueue(item(id, i % 2 === 0 ? { v: 1, retry } : { deadline: 9e15, group: id })))
  const results = await commit(() => [...batch, enqueue(item('i5')), enqueue(item('late'), { delayMs: 50 })])

  expect(results.filter(({ kind }) => kind === 'repeated')).toEqual([
    { kind: 'repeated', id: 'i140' },
    { kind: 'repeated', id: 'i5' },
  ])
  const [a, b] = await both(seen([...ids, 'late']))
  expect(a).toEqual(b)
  const [short, general] = await both((ledger) => ledger.claim(ask(500)))
  expect(short.items.map(({ envelope }) => envelope)).toEqual(general.items.map(({ envelope }) => envelope))
  expect(short.items).toHaveLength(150)
})

it('ends runs as the general way does, and refuses what the general way refuses', async () => {
  const { commit, both } = pair()
  const ids = times(20, (i) => `i${i}`)
  await commit(() => ids.map((id) => enqueue(item(id, id === 'i7' ? { waiter: 'inbox' } : {}))))
  const claims = await both((ledger) => ledger.claim(ask(18)))
  const by = (which: 0 | 1, at: number) => claims[which].items[at]!
  await both((ledger) => ledger.watch('inbox', { itemIds: ['i8'], groupIds: ['i9'] }))
  await commit((which) => [
    { guard: { by: 'lease', lease: by(which, 10).lease }, effects: [{ do: 'release', id: 'i10', delayMs: 0 }] },
  ])

  const results = await commit((which) => {
    const [other, own] = [by(which, 1), by(which, 2)]
    const forged = { ...own, lease: { ...own.lease, token: other.lease.token } }
    const guessed = {
      ...own,
      lease: { ...own.lease, token: own.lease.token.replace(/^./, (at) => (at === 'x' ? 'y' : 'x')) },
    }
    return [
      ended(by(which, 0)),
      ended(by(which, 0)),
      ended(forged),
      ended(guessed),
      ended(by(which, 3), [], '"result"'),
      ended(by(which, 4), [contribute('i4', '1')]),
      ended(by(which, 5), [contribute('i5', '1', true)]),
      ended(by(which, 6), [{ do: 'setGroupValue', groupId: 'i6', value: '1', final: false, ifVersion: 1 }]),
      ...[7, 8, 9, 10].map((at) => ended(by(which, at))),
      ended(by(which, 11), [contribute('i12', '2')]),
      ended(by(which, 12)),
      finish(by(which, 13)),
    ]
  })

  expect(results.map(({ kind }) => kind)).toEqual([
    ...['applied', 'repeated', 'stale', 'stale', 'applied', 'applied', 'applied', 'conflict'],
    // The release has settled the lease of i10.
    ...['applied', 'applied', 'applied', 'repeated', 'applied', 'applied', 'applied'],
  ])
  const [a, b] = await both(seen(ids))
  expect(a).toEqual(b)
  // What has ended is held no longer: the rest lapses, and comes again.
  const leases = await both((ledger) => ledger.inspect!.list({ state: 'active', limit: 50 }))
  expect(leases[0]).toEqual(leases[1])
  expect(leases[0].items.map(({ envelope }) => envelope.id)).toEqual(['i17', 'i16', 'i15', 'i14', 'i6', 'i2', 'i1'])
})
