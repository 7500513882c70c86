import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import type { Claimed } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { until } from '../../servers/wait.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, contribute, enqueue, finish, gate, item, START, times } from '../settlements.js'
import { Schemas } from './schemas.js'

describe('two batches, of which one has not committed when the other begins', () => {
  let schemas: Schemas
  let backend: PostgresBackend
  let client: pg.Client
  /** Commits inside a transaction that the test ends. */
  let slow: Pick<Ledger, 'commit'>
  let quick: Ledger

  beforeAll(async () => {
    schemas = await Schemas.start()
  })
  afterAll(() => schemas?.stop())
  beforeEach(async () => {
    backend = await schemas.open({ now: () => START })
    quick = ledgerOn(backend)
    client = new pg.Client(schemas.url)
    await client.connect()
    slow = quick.enlist!(client)
  })
  afterEach(async () => {
    await client.end()
    await schemas.close(backend)
  })

  async function running(ids: readonly string[], groupId?: string): Promise<readonly Claimed[]> {
    await quick.commit(ids.map((id) => enqueue(item(id, groupId === undefined ? {} : { groupId }))))
    return (await quick.claim(ask(ids.length))).items
  }

  /** `first` runs and stays uncommitted until `second` waits for one of its locks. */
  async function overlapped<A, B>(first: () => Promise<A>, second: () => Promise<B>): Promise<readonly [A, B]> {
    await client.query('begin')
    const done = await first()
    const blocked = second()
    await until(
      () => 'the second batch never waited for the first',
      5_000,
      async () => {
        const { rows } = await schemas.pool.query("select from pg_stat_activity where wait_event_type = 'Lock'")
        return rows.length > 0
      },
    )
    await client.query('commit')
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

  it('a cancel of an item that is finishing is stale, and one of two redrives is', async () => {
    const [a] = await running(['a'])
    const cancel = {
      guard: { by: 'status', id: 'a', in: ['pending', 'running'] },
      effects: [{ do: 'park', id: 'a', ending: 'cancelled', class: 'unclassified', error: 'x', keepMs: 1e6 }],
    } as const
    const [, late] = await overlapped(
      () => slow.commit([finish(a!)]),
      () => quick.commit([cancel]),
    )
    expect(late).toEqual([{ kind: 'stale' }])

    await quick.commit([enqueue(item('b'))])
    await quick.commit([
      { ...cancel, guard: { ...cancel.guard, id: 'b' }, effects: [{ ...cancel.effects[0], id: 'b' }] },
    ])
    const redrive = {
      guard: { by: 'status', id: 'b', in: ['dead'] },
      effects: [
        { do: 'openGroup', groupId: 'b', by: 1 },
        { do: 'reopen', id: 'b', delayMs: 0 },
      ],
    } as const
    const [first, second] = await overlapped(
      () => slow.commit([redrive]),
      () => quick.commit([redrive]),
    )
    expect([first[0]?.kind, second[0]?.kind]).toEqual(['applied', 'stale'])
  })

  it('what a claim sets aside while its type is resumed comes back', async () => {
    const paused = (what: 'pause' | 'resume') =>
      quick.commit([{ guard: { by: 'none' }, effects: [{ do: what, what: 'type', name: 'resize' }] }])
    await quick.commit([enqueue(item('a'))])
    await paused('pause')
    const s = schemas.schemaOf(backend)
    const claim = `select * from ${s}.claim_ready(${START}, 't', 1000, 'w', 1, 100, array(select no from ${s}.queue), array[9])`

    await overlapped(
      () => client.query(claim),
      () => paused('resume'),
    )

    expect((await quick.claim(ask(9))).items.map(({ lease }) => lease.id)).toEqual(['a'])
    expect((await client.query(`select * from ${s}.pause`)).rows).toEqual([])
  })

  it('a claim sets nothing aside while a resume is under way', async () => {
    const paused = (what: 'pause' | 'resume') => [
      { guard: { by: 'none' } as const, effects: [{ do: what, what: 'type', name: 'resize' } as const] },
    ]
    await quick.commit([enqueue(item('a'))])
    await quick.commit(paused('pause'))
    await client.query('begin')
    await slow.commit(paused('resume'))
    expect((await quick.claim(ask(9))).items).toEqual([])
    await client.query('commit')

    expect((await quick.claim(ask(9))).items.map(({ lease }) => lease.id)).toEqual(['a'])
  })

  it('a rolled back batch leaves nothing', async () => {
    const [a] = await running(['a'])
    await client.query('begin')
    await slow.commit([finish(a!), enqueue(item('b')), ...open(['a'])])
    await client.query('rollback')

    expect(await quick.read(['b', 'held'])).toEqual([undefined, undefined])
    expect(await quick.commit([finish(a!)])).toEqual([{ kind: 'applied', closed: [{ groupId: 'a' }] }])
  })

  it('claims of two connections never share a lease', async () => {
    const other = ledgerOn(backend)
    await quick.commit(times(200, (i) => enqueue(item(`i${i}`))))
    const claims = await Promise.all(times(40, (i) => (i % 2 === 0 ? quick : other).claim(ask(10))))
    const ids = claims.flatMap(({ items }) => items.map(({ lease }) => lease.id))

    expect(ids).toHaveLength(200)
    expect(new Set(ids).size).toBe(200)
    const tokens = claims.flatMap(({ items }) => items.map(({ lease }) => lease.token))
    expect(new Set(tokens).size).toBe(200)
  })
})
