import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import type { ClaimedItem } from '../../../src/ports/item.js'
import type { Ledger, WorkerRecord } from '../../../src/ports/ledger.js'
import { until } from '../../servers/wait.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, enqueue, finish, gate, item, times } from '../settlements.js'
import { Schemas } from './schemas.js'

const ME: WorkerRecord = { id: 'w1', host: 'h', version: '1', types: ['resize'], queues: ['default'] }
const LEASE = 3_000

let schemas: Schemas
let backend: PostgresBackend
let ledger: Ledger
let user: pg.Client

beforeAll(async () => {
  schemas = await Schemas.start()
})
afterAll(() => schemas?.stop())
beforeEach(async () => {
  backend = await schemas.open()
  ledger = ledgerOn(backend)
  user = new pg.Client(schemas.url)
  await user.connect()
})
afterEach(async () => {
  await user.end()
  await schemas.close(backend)
})

async function running(ids: readonly string[], leaseMs = LEASE): Promise<readonly ClaimedItem[]> {
  await ledger.commit(ids.map((id) => enqueue(item(id))))
  const { items } = await ledger.claim(ask(ids.length, { leaseMs }))
  return ids.map((id) => items.find(({ lease }) => lease.id === id)!)
}

/** A transaction of the user that stays open. */
async function lock(id: string): Promise<void> {
  await user.query('begin')
  await user.query(`select from ${schemas.schemaOf(backend)}.item where id = '${id}' for update`)
}

const beat = (items: readonly ClaimedItem[], leaseMs = LEASE, running = true) =>
  ledger.extend(
    items.map(({ lease }) => ({ lease, running })),
    leaseMs,
    ME,
  )

/** Resolves when the lease could be extended, or its item was settled: from then on it does not come to another worker. */
async function safe(one: ClaimedItem): Promise<void> {
  await until(
    () => `the lease of ${one.lease.id} could not be extended for half of its length, beside a row that a user holds`,
    LEASE / 2,
    async () => (await beat([one]))[0] !== 'unknown',
  )
}

describe('a row that a transaction of the user holds', () => {
  it.each(['first', 'last'])('holds up no outcome beside it, standing %s in the commit', async (where) => {
    const ids = times(64, (i) => `item-${i + 10}`)
    const items = await running(ids)
    const held = where === 'first' ? ids[0]! : ids.at(-1)!
    await lock(held)

    const committing = ledger.commit(items.map((one) => finish(one)))
    await until(
      () => 'not all outcomes beside the row that a user holds were written within half a lease',
      LEASE / 2,
      async () => (await ledger.read(ids)).every((view, i) => view?.status === 'completed' || ids[i] === held),
    )
    const results = await committing
    expect(results.filter(({ kind }) => kind === 'applied')).toHaveLength(63)
    expect(results[ids.indexOf(held)]).toMatchObject({ kind: 'failed', error: { code: 'POSTGRES_LOCKED' } })
    await user.query('rollback')
  })

  it('does not block the heartbeat of another member while a gate over both waits to be opened', async () => {
    const [a] = await running(['a', 'z'])
    await lock('z')
    const opening = ledger.commit([{ guard: { by: 'absent', id: 'held' }, effects: gate(item('held'), ['a', 'z'], 2) }])
    await user.query('select pg_sleep(0.1)')

    await safe(a!)
    await user.query('rollback')
    expect(await opening).toMatchObject([{ kind: 'applied' }])
  })

  it('is waited for, and what needs it is written as soon as it is free', async () => {
    const [a, z] = await running(['a', 'z'])
    await lock('z')
    const committing = ledger.commit([finish(a!), finish(z!)])
    await user.query('select pg_sleep(1)')
    await user.query('rollback')

    expect(await committing).toMatchObject([{ kind: 'applied' }, { kind: 'applied' }])
  })

  it('loses no lease of a neighbour whose outcome is in the same commit', async () => {
    const leaseMs = 1_500
    // The held one is the first in the commit, and the last in the order in which it takes locks.
    const ids = ['z', ...times(9, (i) => `item-${i}`)]
    const items = await running(ids, leaseMs)
    await lock('z')
    const beats = setInterval(() => void beat(items, leaseMs), leaseMs / 3)
    const committing = ledger.commit(items.map((one) => finish(one)))
    const isAnswered = committing.then(() => true)
    const taken: string[] = []
    while (!(await Promise.race([isAnswered, pause(20)]))) {
      const { items: again } = await ledger.claim(ask(10, { worker: 'w2', leaseMs }))
      taken.push(...again.map(({ lease }) => lease.id))
    }
    clearInterval(beats)
    await user.query('rollback')

    expect(taken).toEqual([])
    expect((await committing).map(({ kind }) => kind)).toEqual(['failed', ...times(9, () => 'applied')])
  })
})

describe('an item whose row a transaction holds until its lease is over', () => {
  it.each([
    ['runs', true],
    // What an earlier heartbeat wrote into the row cannot be corrected while it is held.
    ['has ended and is not written yet', false],
  ])(
    'and that %s is claimed again without a crash, since its worker was alive to ask for more time',
    async (_, runs) => {
      const [held, beside] = await running(['held', 'beside'], 600)
      expect(await beat([held!, beside!], 600)).toEqual(['held', 'held'])
      await lock('held')
      expect(await beat([held!], 600, runs)).toEqual(['unknown'])
      await user.query('select pg_sleep(0.7)')
      await user.query('rollback')

      const { items, crashed } = await ledger.claim(ask(2))

      // The worker did not ask for the one beside it: as far as the backend knows, it died while that ran.
      expect(items.map(({ envelope, lapses, crashes }) => [envelope.id, lapses, crashes]).toSorted()).toEqual([
        ['beside', 1, 1],
        ['held', 1, 0],
      ])
      expect(crashed).toHaveLength(1)
    },
  )
})
