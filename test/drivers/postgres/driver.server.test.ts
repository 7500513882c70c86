import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/core/time/clock.js'
import {
  type Migration,
  migrate,
  PostgresDriver,
  type PostgresDriverOptions,
} from '../../../src/drivers/postgres/index.js'
import { freePort } from '../../servers/free-port.js'
import { startPostgres } from '../../servers/index.js'
import type { PrivateServer } from '../../servers/private-server.js'
import { until } from '../../servers/wait.js'

let server: PrivateServer
const opened: PostgresDriver[] = []
const errors: unknown[] = []

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server?.stop())
afterEach(async () => {
  await Promise.all(opened.splice(0).map((driver) => driver.close()))
  errors.length = 0
})

function open(options: Partial<PostgresDriverOptions> = {}): PostgresDriver {
  const driver = new PostgresDriver({
    connectionString: server.url,
    prepare: true,
    clock: systemClock,
    onError: (error) => void errors.push(error),
    ...options,
  })
  opened.push(driver)
  return driver
}

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** Takes connections, and does with them what the test says: nothing at all, or passes them on to a server. */
async function listenTo(meet: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const listening = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    meet(socket)
  })
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  closing.push(() => {
    cut()
    listening.close()
  })
  return { port: (listening.address() as AddressInfo).port, cut }
}

const silentServer = () => listenTo((socket) => void socket.resume())

/** A way to the server that can be cut. */
async function throughLine(url: string) {
  const { hostname, port: behind } = new URL(url)
  const { port, cut } = await listenTo((socket) => {
    const far = connect(Number(behind), hostname)
    far.on('error', () => undefined)
    socket.pipe(far).pipe(socket)
    socket.on('close', () => far.destroy())
  })
  return { url: url.replace(`:${behind}`, `:${port}`), cut }
}

const one = (text: string, name = '') => ({ name, text })

describe('statements', () => {
  it('go through a pool of ours, and through one of the user, which stays open', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 2 })
    const driver = open({ connectionString: undefined, pool })

    expect(await open().query({ name: 'n', text: 'select $1::int + 1', values: [41] })).toEqual([[42]])
    expect(await driver.query(one('select 7'))).toEqual([[7]])
    await driver.close()
    await expect(driver.query(one('select 1'))).rejects.toMatchObject({ code: 'CLOSED' })
    expect((await pool.query('select 1 as a')).rows).toEqual([{ a: 1 }])
    await pool.end()
  })

  it('reject when their connection is ended, and the next ones work', async () => {
    const driver = open({ maxConnections: 1 })
    const [[pid]] = (await driver.query(one('select pg_backend_pid()'))) as [[number]]
    const slow = driver.query(one('select pg_sleep(10)'))
    slow.catch(() => undefined)
    await open().query({ name: '', text: 'select pg_terminate_backend($1)', values: [pid] })

    await expect(slow).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('terminating connection'),
      cause: { code: '57P01' },
    })
    expect(await driver.query(one('select 1'))).toEqual([[1]])
  })

  it('reject as of unknown outcome when their connection is cut before the answer', async () => {
    const line = await throughLine(server.url)
    const driver = open({ connectionString: line.url })
    await driver.query(one('select 1'))
    const slow = driver.query(one('select pg_sleep(10)', 'slow_one'))
    const received = slow.catch((error: unknown) => error)
    await until(
      () => 'it was not sent',
      5_000,
      async () =>
        (
          await open().query(
            one(
              "select 1 from pg_stat_activity where query like '%pg_sleep(10)' and state = 'active' and pid <> pg_backend_pid()",
            ),
          )
        ).length > 0,
    )
    line.cut()

    expect(await received).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      facts: { what: 'slow_one' },
      cause: expect.any(Error),
    })
  })

  it('keep the error of the server that answers one, and those of the caller', async () => {
    await expect(open().query(one('select no_such_column'))).rejects.toMatchObject({ code: '42703' })
    const own = new Error('mine')
    await expect(open().transaction(() => Promise.reject(own))).rejects.toBe(own)
  })

  it('that deadlock are repeated, and both happen', async () => {
    const driver = open()
    await driver.query(one('create table public.pair (id int primary key, n int not null)'))
    await driver.query(one('insert into public.pair values (1, 0), (2, 0)'))
    let met = 0
    let meet: () => void = () => undefined
    const both = new Promise<void>((resolve) => {
      meet = resolve
    })
    const add = (first: number, second: number) =>
      driver.transaction(async (tx) => {
        await tx.query(one(`update public.pair set n = n + 1 where id = ${first}`))
        met += 1
        if (met === 2) meet()
        await both
        await tx.query(one(`update public.pair set n = n + 1 where id = ${second}`))
      })
    await Promise.all([add(1, 2), add(2, 1)])

    expect(await driver.query(one('select n from public.pair'))).toEqual([[2], [2]])
    // The one that gave way tries again, and may meet the other once more.
    expect(met).toBeGreaterThanOrEqual(3)
  })

  it('are no longer named once a pooler has lost one', async () => {
    const driver = open({ maxConnections: 1 })
    await driver.query(one('select 1', 'kept'))
    // What a pooler does between two statements: the connection behind it is another one.
    await driver.query(one('deallocate all'))

    expect(await driver.query(one('select 1', 'kept'))).toEqual([[1]])
    expect(driver.prepares).toBe(false)
  })

  it('of a transaction that throws leave nothing', async () => {
    const driver = open()
    await driver.query(one('create table public.trace (id int)'))
    const failing = driver.transaction(async (tx) => {
      await tx.query(one('insert into public.trace values (1)'))
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await driver.query(one('select count(*)::int from public.trace'))).toEqual([[0]])
  })
})

describe('a connection that cannot be had', () => {
  const address = (port: number) => `postgres://app:secret-word@127.0.0.1:${port}/app`

  it.each([
    { name: 'nothing listens', at: async () => address(await freePort()), reason: /ECONNREFUSED/ },
    { name: 'the server does not answer', at: async () => address((await silentServer()).port), reason: /timeout/ },
    {
      name: 'there is no such database',
      at: async () => server.url.replace(/\/[^/]*$/, '/no_such_database'),
      reason: /no_such_database/,
    },
  ])('rejects with POSTGRES_UNREACHABLE, its reason and no password: $name', async ({ at, reason }) => {
    const error: unknown = await open({ connectionString: await at() })
      .query(one('select 1'))
      .catch((one: unknown) => one)

    expect(error).toMatchObject({
      code: 'POSTGRES_UNREACHABLE',
      message: expect.stringMatching(reason),
      cause: expect.any(Error),
    })
    expect(String((error as Error).message)).not.toContain('secret-word')
  })

  it('rejects with CLOSED when the backend is closed meanwhile', async () => {
    const driver = open({ connectionString: address((await silentServer()).port) })
    const asked = driver.query(one('select 1')).catch((error: unknown) => error)
    await driver.close()

    expect(await asked).toMatchObject({ code: 'CLOSED' })
  })

  it('rejects with CLOSED when the pool was ended by its owner', async () => {
    const pool = new pg.Pool({ connectionString: server.url })
    const driver = open({ connectionString: undefined, pool })
    await pool.end()

    await expect(driver.query(one('select 1'))).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('notifications', () => {
  it('arrive on a connection that comes back, and its subscribers learn of the gap', async () => {
    const driver = open()
    const received: string[] = []
    let gaps = 0
    const leave = driver.listen(
      'odd "channel"',
      (payload) => void received.push(payload),
      () => {
        gaps += 1
      },
    )
    await driver.listening()
    const notify = (payload: string) =>
      driver.query({ name: '', text: 'select pg_notify($1, $2)', values: ['odd "channel"', payload] })
    await notify('one')
    await until(
      () => 'the first did not arrive',
      5_000,
      async () => received.includes('one'),
    )
    await driver.query(
      one(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%' and pid <> pg_backend_pid()",
      ),
    )
    await until(
      () => 'the connection did not come back',
      5_000,
      async () => gaps === 1,
    )
    await notify('two')
    await until(
      () => 'the second did not arrive',
      5_000,
      async () => received.includes('two'),
    )
    leave()
    await notify('three')
    await notify('four')

    expect(received).toEqual(['one', 'two'])
    expect(errors).not.toEqual([])
  })
})

describe('migrations', () => {
  const steps: readonly Migration[] = [
    { version: 1, minReader: 1, about: 'a table', sql: 'create table {schema}.a (id int)' },
    { version: 2, minReader: 1, about: 'a column', sql: 'alter table {schema}.a add b int' },
  ]
  const options = (schema: string, more: object = {}) => ({
    driver: open(),
    schema,
    part: 'test',
    migrations: steps,
    mayMigrate: true,
    ...more,
  })

  it('run once, however many processes start at the same time', async () => {
    const schema = 'ten "at" once {schema}'
    const all = await Promise.all(Array.from({ length: 10 }, () => migrate(options(schema))))
    expect(all).toEqual(Array.from({ length: 10 }, () => ({ version: 2, minReader: 1 })))
    expect(await migrate(options(schema, { mayMigrate: false }))).toEqual({ version: 2, minReader: 1 })
  })

  it('add to what is there', async () => {
    await migrate(options('step by step', { migrations: steps.slice(0, 1) }))
    await expect(migrate(options('step by step', { mayMigrate: false }))).rejects.toMatchObject({
      code: 'SCHEMA_TOO_OLD',
    })
    expect(await migrate(options('step by step'))).toEqual({ version: 2, minReader: 1 })
    expect(await open().query(one('select a.id, a.b from "step by step".a'))).toEqual([])
  })

  it('leave a newer schema as it is, and refuse one that needs a newer reader', async () => {
    await migrate(options('newer'))
    expect(await migrate(options('newer', { migrations: steps.slice(0, 1) }))).toEqual({ version: 2, minReader: 1 })
    const third = { version: 3, minReader: 3, about: 'a break', sql: 'alter table {schema}.a drop b' }
    await migrate(options('newer', { migrations: [...steps, third] }))
    await expect(migrate(options('newer'))).rejects.toMatchObject({
      code: 'SCHEMA_TOO_NEW',
      facts: { mine: 2, version: 3, minReader: 3 },
    })
  })

  it('that may not run say what is missing, and a step that fails leaves nothing', async () => {
    await expect(migrate(options('nobody', { mayMigrate: false }))).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    const bad = { version: 3, minReader: 1, about: 'nonsense', sql: 'create table {schema}.c (id int); nonsense' }
    await expect(migrate(options('broken', { migrations: [...steps, bad] }))).rejects.toThrow(/syntax/)
    await expect(migrate(options('broken', { mayMigrate: false }))).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })
})
