import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Claimed } from '../../../src/ports/item.js'
import { until } from '../../servers/wait.js'
import { ask, contribute, enqueue, finish, gate, item, START, times } from '../settlements.js'
import type { TracerStore } from '../tracer.js'
import { PostgresTracer } from './ledger.js'
import { postgresStore, SCHEMA } from './store.js'

type Store = TracerStore & { connect(): Promise<pg.Client> }

describe('two batches, of which one has not committed when the other begins', () => {
  let store: Store
  let clients: pg.Client[]
  let slow: PostgresTracer
  let quick: PostgresTracer
  let watcher: pg.Client

  beforeAll(async () => {
    store = await postgresStore()
  })
  afterAll(() => store?.close())
  beforeEach(async () => {
    await store.reset()
    clients = await Promise.all(times(3, () => store.connect()))
    watcher = clients[2]!
    const now = () => START
    slow = new PostgresTracer({ client: clients[0]!, schema: SCHEMA, now })
    quick = new PostgresTracer({ client: clients[1]!, schema: SCHEMA, now })
  })
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()))
  })

  async function running(ids: readonly string[], groupId?: string): Promise<readonly Claimed[]> {
    await quick.commit(ids.map((id) => enqueue(item(id, groupId === undefined ? {} : { groupId }))))
    return (await quick.claim(ask(ids.length))).items
  }

  /** `first` runs and stays uncommitted until `second` waits for one of its locks. */
  async function overlapped<A, B>(first: () => Promise<A>, second: () => Promise<B>): Promise<readonly [A, B]> {
    await clients[0]!.query('begin')
    const done = await first()
    const blocked = second()
    await until(
      () => 'the second batch never waited for the first',
      5_000,
      async () => {
        const { rows } = await watcher.query("select from pg_stat_activity where wait_event_type = 'Lock'")
        return rows.length > 0
      },
    )
    await clients[0]!.query('commit')
    return [done, await blocked]
  }

  const open = (members: readonly string[]) => [
    { guard: { by: 'absent', id: 'held' } as const, effects: gate(item('held'), members) },
  ]
  const freed = async () => (await quick.claim(ask(9))).items.map((claimed) => [claimed.lease.id, claimed.gate])

  it('a gate that is opened over a member that is ending counts it', async () => {
    const [m] = await running(['m'])

    await overlapped(
      () => slow.commit([finish(m!)]),
      () => quick.commit(open(['m'])),
    )

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a member that ends while a gate is opened over it tells the gate', async () => {
    const [m] = await running(['m'])

    await overlapped(
      () => slow.commit(open(['m'])),
      () => quick.commit([finish(m!)]),
    )

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a member that is pushed while a gate is opened over it tells the gate when it ends', async () => {
    await overlapped(
      () => slow.commit(open(['m'])),
      () => quick.commit([enqueue(item('m'))]),
    )
    const [m] = (await quick.claim(ask(1))).items
    await quick.commit([finish(m!)])

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a gate that is opened over a member that is being pushed waits for it', async () => {
    await overlapped(
      () => slow.commit([enqueue(item('m'))]),
      () => quick.commit(open(['m'])),
    )
    const [m] = (await quick.claim(ask(1))).items
    expect(m!.lease.id).toBe('m')
    await quick.commit([finish(m!)])

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('an enqueue of an id that is finishing answers repeated', async () => {
    const [a] = await running(['a'])

    const [, again] = await overlapped(
      () => slow.commit([finish(a!)]),
      () => quick.commit([enqueue(item('a'))]),
    )

    expect(again).toEqual([{ kind: 'repeated', id: 'a' }])
    expect((await quick.claim(ask(1))).items).toEqual([])
    expect((await quick.read(['a']))[0]).toMatchObject({ status: 'success' })
  })

  it('an enqueue of an id that is being enqueued answers repeated', async () => {
    const [, again] = await overlapped(
      () => slow.commit([enqueue(item('a'))]),
      () => quick.commit([enqueue(item('b')), enqueue(item('a'))]),
    )

    expect(again.map(({ kind }) => kind)).toEqual(['applied', 'repeated'])
  })

  it('a commit that is sent again before the first has ended answers repeated', async () => {
    const [a] = await running(['a'])

    const [first, again] = await overlapped(
      () => slow.commit([finish(a!, [contribute('a', '1')])]),
      () => quick.commit([finish(a!, [contribute('a', '1')])]),
    )

    expect(first).toEqual([{ kind: 'applied', closed: [{ groupId: 'a', value: '1' }] }])
    expect(again).toEqual([{ kind: 'repeated', id: 'a' }])
  })

  it('the last two of a group close it once, by the one that commits last', async () => {
    const [a, b] = await running(['a', 'b'], 'g')

    const [first, second] = await overlapped(
      () => slow.commit([finish(a!)]),
      () => quick.commit([finish(b!, [contribute('g', '2')])]),
    )

    expect(first).toEqual([{ kind: 'applied', closed: [] }])
    expect(second).toEqual([{ kind: 'applied', closed: [{ groupId: 'g', value: '2' }] }])
  })

  it('two appends on one version: the later one is in conflict with what the earlier one wrote', async () => {
    const [a, b] = await running(['a', 'b'], 'g')

    const [, second] = await overlapped(
      () => slow.commit([finish(a!, [contribute('g', '[1]', false, 0)])]),
      () => quick.commit([finish(b!, [contribute('g', '[2]', false, 0)])]),
    )

    expect(second).toEqual([{ kind: 'conflict', groupId: 'g', now: { value: '[1]', final: false, version: 1 } }])
  })

  it('a guest and the end of a root that was alone leave the group open until the guest has ended', async () => {
    const [a] = await running(['a'])

    const [, ended] = await overlapped(
      () => slow.commit([enqueue(item('guest', { groupId: 'a' }))]),
      () => quick.commit([finish(a!)]),
    )

    expect(ended).toEqual([{ kind: 'applied', closed: [] }])
    const [guest] = (await quick.claim(ask(1))).items
    expect(await quick.commit([finish(guest!)])).toEqual([{ kind: 'applied', closed: [{ groupId: 'a' }] }])
  })

  it('a rolled back batch leaves nothing', async () => {
    const [a] = await running(['a'])
    await clients[0]!.query('begin')
    await slow.commit([finish(a!), enqueue(item('b')), ...open(['a'])])
    await clients[0]!.query('rollback')

    expect(await quick.read(['b', 'held'])).toEqual([undefined, undefined])
    expect(await quick.commit([finish(a!)])).toEqual([{ kind: 'applied', closed: [{ groupId: 'a' }] }])
  })
})

describe('a text that PostgreSQL cannot store', () => {
  it('is refused alone, and its neighbours are applied', async () => {
    const store = await postgresStore()
    await store.reset()
    const ledger = await store.open()
    const results = await ledger.commit([
      enqueue(item('a')),
      enqueue(item('b', { input: 'nul \0' })),
      enqueue(item('c', { tags: ['half \ud800'] })),
      enqueue(item('d', { input: '"whole \u{1f600} and escaped \\u0000"' })),
    ])
    const [a] = (await ledger.claim(ask(1))).items
    const parked = await ledger.commit([
      {
        guard: { by: 'lease', lease: a!.lease },
        effects: [{ do: 'park', id: 'a', ending: 'aborted', class: 'poison', error: 'bad \0 \ud800', keepMs: 1e6 }],
      },
    ])

    expect(results.map(({ kind }) => kind)).toEqual(['applied', 'refused', 'refused', 'applied'])
    expect(parked[0]?.kind).toBe('applied')
    expect((await ledger.read(['a']))[0]?.error).toBe('bad \ufffd \ufffd')
    await ledger.close()
    await store.close()
  })
})
