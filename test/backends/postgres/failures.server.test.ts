import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type PostgresBackend, postgresBackend } from '../../../src/backends/postgres/index.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Settlement } from '../../../src/ports/settlement.js'
import { until } from '../../servers/wait.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, deadLetter, enqueue, finish, item, retry } from '../settlements.js'
import { Schemas } from './schemas.js'

/** A pool whose next answer to `isLost` gets lost on its way: the statement has happened, and the caller does not learn of it. */
function losing(url: string, isLost: (text: string) => boolean): pg.Pool & { lose: boolean } {
  class Losing extends pg.Client {
    override query(...given: unknown[]) {
      const [config] = given as [{ readonly text?: string }]
      const asked = super.query(...(given as [string])) as unknown as Promise<unknown>
      if (!pool.lose || !isLost(config?.text ?? '')) return asked as never
      pool.lose = false
      return asked.then(() => {
        throw new Error('Connection terminated unexpectedly')
      }) as never
    }
  }
  const made = new pg.Pool({ connectionString: url, max: 3, Client: Losing } as pg.PoolConfig)
  made.on('error', () => undefined)
  const pool = Object.assign(made, { lose: false })
  return pool
}

describe('a ledger whose server or connection goes away', () => {
  let schemas: Schemas
  let backend: PostgresBackend
  let ledger: Ledger

  beforeAll(async () => {
    // Commits are durable here: the server is killed.
    schemas = await Schemas.start({})
  })
  afterAll(() => schemas?.stop())
  beforeEach(async () => {
    backend = await schemas.open({ connectionString: schemas.url })
    ledger = ledgerOn(backend)
  })
  afterEach(() => schemas.close(backend))

  it('does not know of a commit whose reply was lost, and finds out by repeating it', async () => {
    const pool = losing(schemas.url, (text) => /commit_batch|add_items|end_items/.test(text))
    const other = await schemas.open({ pool })
    const far = ledgerOn(other)
    const push = enqueue(item('a'))
    await far.commit([enqueue(item('warm'))])
    pool.lose = true
    await expect(far.commit([push])).rejects.toThrow('terminated')
    expect(await far.commit([push])).toEqual([{ kind: 'repeated', id: 'a' }])

    const { items } = await far.claim(ask(9))
    const settled = items.map((claimed, i) => (i === 0 ? finish(claimed) : retry(claimed, 1_000)))
    pool.lose = true
    await expect(far.commit(settled)).rejects.toThrow('terminated')
    expect((await far.commit(settled)).map(({ kind }) => kind)).toEqual(['repeated', 'repeated'])
    expect((await far.read(['warm', 'a'])).map((view) => view?.status)).toEqual(['completed', 'pending'])
    await schemas.close(other)
    await pool.end()
  })

  it('nothing of a commit happens whose connection is ended in the middle, and the same commit works afterwards', async () => {
    await ledger.commit([enqueue(item('a')), enqueue(item('b'))])
    const { items } = await ledger.claim(ask(2))
    const client = new pg.Client(schemas.url)
    await client.connect()
    await client.query(`begin; select from ${schemas.schemaOf(backend)}.item where id = 'b' for update`)
    const settled = items.map((claimed) => finish(claimed))
    const stuck = ledger.commit(settled)
    stuck.catch(() => undefined)
    await until(
      () => 'the commit never waited',
      5_000,
      async () => {
        const { rowCount } = await client.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'",
        )
        return rowCount === 1
      },
    )
    await expect(stuck).rejects.toThrow()
    await client.query('rollback')
    await client.end()

    expect((await ledger.read(['a', 'b'])).map((view) => view?.status)).toEqual(['running', 'running'])
    expect((await ledger.commit(settled)).map(({ kind }) => kind)).toEqual(['applied', 'applied'])
  })

  it('what was accepted is there after the server was killed, and listeners are notified again', async () => {
    const received: string[] = []
    ledger.onReady((queue) => void received.push(queue))
    await ledger.commit([enqueue(item('kept'))])
    const { items } = await ledger.claim(ask(1))
    await schemas.server.restart('SIGKILL')
    received.length = 0

    // Connections of the pool are dead, and one after the other is found out.
    await until(
      () => 'the ledger did not come back',
      15_000,
      () =>
        ledger.read(['kept']).then(
          ([view]) => view?.status === 'running',
          () => false,
        ),
    )
    expect((await ledger.commit([finish(items[0]!)])).map(({ kind }) => kind)).toEqual(['applied'])
    await until(
      () => 'no notification after the restart',
      15_000,
      async () => {
        await ledger.commit([enqueue(item(`i${received.length}`))]).catch(() => undefined)
        return received.includes('default')
      },
    )
  })

  it('a commit while the server is away is refused, and leaves nothing', async () => {
    await ledger.commit([enqueue(item('before'))])
    await schemas.server.kill()
    await expect(ledger.commit([enqueue(item('lost'))])).rejects.toThrow()
    await schemas.server.restart()
    await until(
      () => 'the ledger did not come back',
      15_000,
      () =>
        ledger.read(['before', 'lost']).then(
          (views) => views[0]?.status === 'pending' && views[1] === undefined,
          () => false,
        ),
    )
  })
})

describe('a connection that does not do', () => {
  let schemas: Schemas
  beforeAll(async () => {
    schemas = await Schemas.start()
  })
  afterAll(() => schemas?.stop())

  it('is not kept if it leads to a server that only reads', async () => {
    const open = () => postgresBackend({ connectionString: schemas.url, schema: 'read only', maxConnections: 1 })
    const before = open()
    await ledgerOn(before).commit([enqueue(item('a'))])
    await before.close()
    const client = new pg.Client(schemas.url)
    await client.connect()
    const { rows } = await client.query('select quote_ident(current_database()) as name')
    const readOnly = (value: string) =>
      client.query(`alter database ${rows[0].name} set default_transaction_read_only = ${value}`)
    // For connections that are made from now on: the address leads to a standby.
    await readOnly('on')
    const backend = open()
    const ledger = ledgerOn(backend)
    await expect(ledger.commit([enqueue(item('b'))])).rejects.toMatchObject({ code: '25006' })
    await readOnly('off')
    expect(await ledger.commit([enqueue(item('b'))])).toEqual([{ kind: 'applied', closed: [] }])
    await backend.close()
    await client.end()
  })

  it('comes back to listen even if onError throws when it is lost', async () => {
    const reported: unknown[] = []
    const onError = (error: unknown) => {
      reported.push(error)
      throw new Error('a logger that fails')
    }
    const backend = await schemas.open({ connectionString: schemas.url, onError })
    const ledger = ledgerOn(backend)
    const received: string[] = []
    ledger.onReady((queue) => void received.push(queue))
    await ledger.commit([enqueue(item('first'))])
    const { rowCount } = await schemas.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%'",
    )
    expect(rowCount).toBe(1)
    await until(
      () => 'the loss was never reported',
      5_000,
      () => reported.length > 0,
    )
    received.length = 0
    await until(
      () => 'no notification after the loss',
      10_000,
      async () => {
        await ledger.commit([enqueue(item(`i${performance.now()}`))])
        return received.includes('default')
      },
    )
    await schemas.close(backend)
  })

  it('holds up no commit if nothing answers where it listens', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => void sockets.add(socket))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const backend = await schemas.open({
      connectionString: schemas.url,
      listenConnectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
    })
    const ledger = ledgerOn(backend)
    ledger.onReady(() => undefined)
    expect(await ledger.commit([enqueue(item('a'))])).toEqual([{ kind: 'applied', closed: [] }])
    expect(sockets.size).toBe(1)
    await schemas.close(backend)
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
})

describe('a backend on a schema', () => {
  let schemas: Schemas
  beforeAll(async () => {
    schemas = await Schemas.start()
  })
  afterAll(() => schemas?.stop())

  it('has its name kept exactly, however hostile, or refused before anything is asked', async () => {
    const names = [`x'; drop schema public cascade; --`, '$millrace$', 'a\nb', '{schema}', '"', '\\', 'ünï 漢字']
    for (const schema of names) {
      const backend = postgresBackend({ connectionString: schemas.url, schema })
      const ledger = ledgerOn(backend)
      expect((await ledger.commit([enqueue(item('a'))]))[0]?.kind, schema).toBe('applied')
      expect((await ledger.claim(ask(1))).items, schema).toHaveLength(1)
      await backend.close()
    }
    const { rows } = await schemas.pool.query('select nspname from pg_namespace')
    expect(rows.map(({ nspname }) => nspname)).toEqual(expect.arrayContaining([...names, 'public']))
    for (const schema of ['a\0b', 'x'.repeat(500), '\ud800']) {
      const make = () => postgresBackend({ connectionString: schemas.url, schema })
      expect(make).toThrow(expect.objectContaining({ code: 'BAD_NAME' }))
    }
    const backend = await schemas.open()
    expect(() => backend.named('a\0b')).toThrow(expect.objectContaining({ code: 'BAD_TEXT' }))
    expect(() => backend.named('x'.repeat(2_000))).toThrow(expect.objectContaining({ code: 'TOO_LARGE' }))
    await schemas.close(backend)
  })

  it('works natively or over plain ports, and refuses the other', async () => {
    const native = await schemas.open()
    await ledgerOn(native).commit([enqueue(item('a'))])
    await expect(native.queue.pop(1, 1_000)).rejects.toMatchObject({ code: 'WRONG_MODE' })
    await schemas.close(native)
    const plain = await schemas.open()
    await plain.queue.pop(1, 1_000)
    await expect(ledgerOn(plain).commit([enqueue(item('a'))])).rejects.toMatchObject({ code: 'WRONG_MODE' })
    await schemas.close(plain)
  })

  it('refuses texts that PostgreSQL cannot store, and nothing else of the batch', async () => {
    const backend = await schemas.open()
    const ledger = ledgerOn(backend)
    const results = await ledger.commit([
      enqueue(item('a')),
      enqueue(item('b', { input: 'nul \0' })),
      enqueue(item('c', { tags: ['half \ud800'] })),
      enqueue(item('d', { input: '"whole \u{1f600} and escaped \\u0000"' })),
      enqueue(item('x'.repeat(2_000))),
    ])
    const codes = results.map((result) => (result.kind === 'refused' ? result.code : result.kind))
    expect(codes).toEqual(['applied', 'BAD_TEXT', 'BAD_TEXT', 'applied', 'BAD_NAME'])
    const [a] = (await ledger.claim(ask(1))).items
    const deadLetter = {
      do: 'deadLetter',
      id: 'a',
      ending: 'aborted',
      class: 'poison',
      error: 'bad \0 \ud800',
      keepMs: 1e6,
    } as const
    await ledger.commit([{ guard: { by: 'lease', lease: a!.lease }, effects: [deadLetter] }])
    expect((await ledger.read(['a']))[0]?.error).toBe('bad \ufffd \ufffd')
    await schemas.close(backend)
  })

  it('refuses guards that PostgreSQL cannot read, and nothing else of the batch', async () => {
    const backend = await schemas.open()
    const ledger = ledgerOn(backend)
    const lease = { id: 'nul \0', queue: 'default', token: 't', fence: 1, until: 0 }
    const results = await ledger.commit([
      enqueue(item('a')),
      { guard: { by: 'lease', lease }, effects: [] },
      { guard: { by: 'lease', lease: { ...lease, id: 'a', token: 'nul \0' } }, effects: [] },
      { guard: { by: 'schedule', name: 'nul \0', at: undefined }, effects: [] },
      { guard: { by: 'status', id: 'half \ud800', in: ['pending'] }, effects: [] },
      enqueue(item('b')),
    ])
    const codes = results.map((result) => (result.kind === 'refused' ? result.code : result.kind))
    expect(codes).toEqual(['applied', ...Array(4).fill('BAD_TEXT'), 'applied'])
    await schemas.close(backend)
  })

  it('refuses an item whose redrive the server could not do, whichever field it is', async () => {
    const backend = await schemas.open()
    const ledger = ledgerOn(backend)
    const results = await ledger.commit([
      enqueue(item('a', { group: 'nul \0' })),
      enqueue(item('b', { trace: { traceparent: 'half \ud800' } })),
      enqueue(item('c', { gates: ['nul \0'] })),
      enqueue(item('d', { fromElsewhere: { deep: ['half \udc00'] } })),
      enqueue(item('e', { group: '{"escaped":"\\u0000"}', gates: ['\\u0000', '\\\\ud800', '\u{1f600}'] })),
    ])
    const codes = results.map((result) => (result.kind === 'refused' ? result.code : result.kind))
    expect(codes).toEqual([...Array(4).fill('BAD_TEXT'), 'applied'])
    const [e] = (await ledger.claim(ask(1))).items
    await ledger.commit([deadLetter(e!)])
    const redrive = {
      guard: { by: 'status', id: 'e', in: ['dead'] },
      effects: [{ do: 'redrive', id: 'e', delayMs: 0 }],
    }
    expect((await ledger.commit([redrive as Settlement]))[0]?.kind).toBe('applied')
    await schemas.close(backend)
  })

  it('says what is wrong with its options', () => {
    const make = (options: object) => () => postgresBackend(options as never)
    expect(make({})).toThrow(/connectionString/)
    expect(make({ connectionString: 'x', pool: schemas.pool })).toThrow(/not both/)
    expect(make({ pool: {} })).toThrow(/a Pool of pg/)
    expect(make({ connectionString: 'x', shema: 'y' })).toThrow(/Did you mean "schema"/)
    expect(make({ connectionString: 'x', now: () => 0, clock: {} })).toThrow(/left out when `clock`/)
  })

  it('migrates once when ten start at the same moment, and not at all when it may not', async () => {
    const open = (migrate: boolean, schema = 'ten at once') =>
      postgresBackend({ connectionString: schemas.url, schema, migrate, maxConnections: 1 })
    const ten = Array.from({ length: 10 }, () => open(true))
    await Promise.all(ten.map((backend, i) => ledgerOn(backend).commit([enqueue(item(`i${i}`))])))
    const readOnly = open(false)
    expect((await ledgerOn(readOnly).claim(ask(20))).items).toHaveLength(10)
    const missing = open(false, 'nothing here')
    await expect(missing.store.get('k')).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    await Promise.all([...ten, readOnly, missing].map((backend) => backend.close()))
  })
})
