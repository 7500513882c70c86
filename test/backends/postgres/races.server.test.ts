import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type PostgresBackend, postgresBackend } from '../../../src/backends/postgres/index.js'
import type { ClaimedItem } from '../../../src/ports/item.js'
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
  let slow: Pick<Ledger, 'commit' | 'watch'>
  let other: PostgresBackend
  let quick: Ledger
  let now = START

  beforeAll(async () => {
    schemas = await Schemas.start()
  })
  afterAll(() => schemas?.stop())
  beforeEach(async () => {
    now = START
    backend = await schemas.open({ now: () => now })
    quick = ledgerOn(backend)
    client = new pg.Client(schemas.url)
    await client.connect()
    const schema = schemas.schemaOf(backend).slice(1, -1).replaceAll('""', '"')
    // All that this one has is the connection on which the test begins and ends transactions.
    const pool = { connect: async () => client, on: () => undefined } as unknown as pg.Pool
    other = postgresBackend({ schema, pool, now: () => START, onError: () => undefined })
    slow = ledgerOn(other)
    // What is asked for once is known before: modes, and the numbers of names.
    await quick.commit([enqueue(item('warm'))])
    await slow.commit([enqueue(item('warm'))])
    const { items } = await quick.claim(ask(1))
    await quick.commit(items.map((claimed) => finish(claimed)))
  })
  afterEach(async () => {
    await other.close()
    await client.end()
    await schemas.close(backend)
  })

  async function running(ids: readonly string[], groupId?: string): Promise<readonly ClaimedItem[]> {
    await quick.commit(ids.map((id) => enqueue(item(id, groupId === undefined ? {} : { groupId }))))
    return (await quick.claim(ask(ids.length))).items
  }

  const aSessionWaits = () =>
    until(
      () => 'no session waited for a lock',
      5_000,
      async () => {
        const { rows } = await schemas.pool.query("select from pg_stat_activity where wait_event_type = 'Lock'")
        return rows.length > 0
      },
    )

  /** `first` runs and stays uncommitted until `second` waits for one of its locks. */
  async function overlapped<A, B>(first: () => Promise<A>, second: () => Promise<B>): Promise<readonly [A, B]> {
    await client.query('begin')
    const done = await first()
    const blocked = second()
    await aSessionWaits()
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

  it('a member that ends while a gate is opened over it notifies the gate', async () => {
    const [m] = await running(['m'])

    await overlapped(
      () => slow.commit(open(['m'])),
      () => quick.commit([finish(m!)]),
    )

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a member that is pushed, and ends, while a gate is opened over it is found by the next claim', async () => {
    await client.query('begin')
    await slow.commit(open(['m']))
    await quick.commit([enqueue(item('m'))])
    const [m] = (await quick.claim(ask(1))).items
    await quick.commit([finish(m!)])
    await client.query('commit')

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a gate that is opened over a member that is being pushed waits for it', async () => {
    await client.query('begin')
    await slow.commit([enqueue(item('m'))])
    await quick.commit(open(['m']))
    await client.query('commit')
    const [m] = (await quick.claim(ask(1))).items
    expect(m!.lease.id).toBe('m')
    await quick.commit([finish(m!)])

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a member that began to end before a user opened a gate over it, and has not ended yet at the check, opens it', async () => {
    const [m] = await running(['m'])
    await client.query('begin')
    await slow.commit([finish(m!)])
    const user = new pg.Client(schemas.url)
    await user.connect()
    await user.query('begin')
    await quick.enlist!(user).commit(open(['m']))
    await user.query('commit')
    await user.end()
    const reply = await quick.claim(ask(9))
    expect(reply.items).toEqual([])
    // The clock of this test stands still: what is to be checked soon is checked after that.
    expect(reply.nextDueAt).toBe(START + 20)
    await client.query('commit')
    now = START + 20

    expect(await freed()).toEqual([['held', { met: true }]])
  })

  it('a member whose end waits for a lock while a user opens a gate over it, and a claim checks it, notifies the gate', async () => {
    const [m] = await running(['m'])
    await client.query('begin')
    // As a heartbeat holds it: a check is not hindered, an end is.
    await client.query(`select from ${schemas.schemaOf(backend)}.item where id = 'm' for no key update`)
    const ending = quick.commit([finish(m!)])
    await aSessionWaits()
    const user = new pg.Client(schemas.url)
    await user.connect()
    await user.query('begin')
    await quick.enlist!(user).commit(open(['m']))
    await user.query('commit')
    await user.end()
    expect(await quick.claim(ask(9))).not.toHaveProperty('nextDueAt')
    await client.query('commit')
    await ending

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
    expect((await quick.read(['a']))[0]).toMatchObject({ status: 'completed' })
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

  it('a guest and the end of a single root leave the group open until the guest has ended', async () => {
    const [a] = await running(['a'])

    const [, ended] = await overlapped(
      () => slow.commit([enqueue(item('guest', { groupId: 'a' }))]),
      () => quick.commit([finish(a!)]),
    )

    expect(ended).toEqual([{ kind: 'applied', closed: [] }])
    const [guest] = (await quick.claim(ask(1))).items
    expect(await quick.commit([finish(guest!)])).toEqual([{ kind: 'applied', closed: [{ groupId: 'a' }] }])
  })

  it('a cancel of an item that is finishing is stale, and so is one of two redrives', async () => {
    const [a] = await running(['a'])
    const cancel = {
      guard: { by: 'status', id: 'a', in: ['pending', 'running'] },
      effects: [{ do: 'deadLetter', id: 'a', ending: 'cancelled', class: 'unclassified', error: 'x', keepMs: 1e6 }],
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
        { do: 'joinGroup', groupId: 'b', count: 1 },
        { do: 'redrive', id: 'b', delayMs: 0 },
      ],
    } as const
    const [first, second] = await overlapped(
      () => slow.commit([redrive]),
      () => quick.commit([redrive]),
    )
    expect([first[0]?.kind, second[0]?.kind]).toEqual(['applied', 'stale'])
  })

  it('what a claim puts on hold while its type is resumed comes back', async () => {
    const paused = (what: 'pause' | 'resume') =>
      quick.commit([{ guard: { by: 'none' }, effects: [{ do: what, what: 'type', name: 'resize' }] }])
    await quick.commit([enqueue(item('a'))])
    await paused('pause')
    const s = schemas.schemaOf(backend)
    const claim = `select * from ${s}.claim_ready(${START}, 't', 1000, 'w', 100, array(select no from ${s}.queue), array[9], array[3], null, null, null)`

    await overlapped(
      () => client.query(claim),
      () => paused('resume'),
    )

    expect((await quick.claim(ask(9))).items.map(({ lease }) => lease.id)).toEqual(['a'])
    expect((await client.query(`select * from ${s}.pause`)).rows).toEqual([])
  })

  it('a claim puts nothing on hold while a resume is under way', async () => {
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

  it('a claim takes an item in its turn while a caller begins to wait for it', async () => {
    await quick.commit(['a', 'b', 'c'].map((id) => enqueue(item(id))))
    await client.query('begin')
    await slow.watch('inbox', { itemIds: ['a'], groupIds: ['other'] })

    const { items } = await quick.claim(ask(3))
    await client.query('commit')

    expect(items.map(({ lease }) => lease.id)).toEqual(['a', 'b', 'c'])
  })

  it('an item that ends while a caller begins to wait for it notifies that caller, once', async () => {
    const [a] = await running(['a'])
    const received: string[] = []
    const off = quick.onInbox('inbox', ({ itemIds }) => received.push(...itemIds))

    await overlapped(
      () => slow.watch('inbox', { itemIds: ['a'], groupIds: [] }),
      () => quick.commit([finish(a!)]),
    )

    await until(
      () => 'the inbox was not notified',
      5_000,
      () => received.length > 0,
    )
    off()
    expect(received).toEqual(['a'])
    const { rows } = await schemas.pool.query(`select from ${schemas.schemaOf(backend)}.item_watcher`)
    expect(rows).toEqual([])
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
    // A claim that checks whether there is more locks one item for a moment, which others pass over; it says that there is.
    while (claims.at(-1)!.more || claims.length === 40) claims.push(await quick.claim(ask(10)))
    const ids = claims.flatMap(({ items }) => items.map(({ lease }) => lease.id))

    expect(ids).toHaveLength(200)
    expect(new Set(ids).size).toBe(200)
    const tokens = claims.flatMap(({ items }) => items.map(({ lease }) => lease.token))
    expect(new Set(tokens).size).toBe(200)
  })

  it('claims at the same time never take more than their rooms hold, and together take everything', async () => {
    const type = (i: number) => ['a', 'b', 'c'][i % 3]!
    await quick.commit(times(300, (i) => enqueue(item(`i${i}`, { type: type(i) }))))
    const rooms = [
      { types: ['a'], max: 3 },
      { types: ['b', 'c'], max: 9 },
    ]
    const taken: string[] = []
    const worker = async () => {
      for (;;) {
        const { items, more } = await quick.claim(ask(10, { rooms }))
        const ofA = items.filter(({ envelope }) => envelope.type === 'a').length
        expect([ofA <= 3, items.length - ofA <= 9, items.length <= 10]).toEqual([true, true, true])
        taken.push(...items.map(({ lease }) => lease.id))
        if (!more) return
      }
    }
    await Promise.all(times(6, worker))

    expect([taken.length, new Set(taken).size]).toEqual([300, 300])
  })
})
