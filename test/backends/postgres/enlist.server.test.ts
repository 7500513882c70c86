import { sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleJs } from 'drizzle-orm/postgres-js'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import { systemClock } from '../../../src/core/time/clock.js'
import { PostgresDriver } from '../../../src/drivers/postgres/index.js'
import { createWork, defineWork, type WorkHandle } from '../../../src/index.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ledgerOn } from '../ledger-on.js'
import { enqueue, item } from '../settlements.js'
import { isResting, Schemas } from './schemas.js'

let schemas: Schemas
let backend: PostgresBackend
let ledger: Ledger
let pool: pg.Pool
let js: postgres.Sql

beforeAll(async () => {
  schemas = await Schemas.start()
  backend = await schemas.open()
  ledger = ledgerOn(backend)
  pool = new pg.Pool({ connectionString: schemas.url })
  js = postgres(schemas.url, { max: 2, onnotice: () => undefined })
  await pool.query('create table public.orders (id text primary key)')
})
afterAll(async () => {
  await js?.end()
  await pool?.end()
  await schemas?.close(backend)
  await schemas?.stop()
})

/** Runs a function in a transaction of a library: it writes an order with that library's own means. */
type Within = (order: string, run: (tx: unknown) => Promise<unknown>) => Promise<unknown>

const libraries: Readonly<Record<string, Within>> = {
  pg: async (order, run) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query('insert into public.orders values ($1)', [order])
      await run(client)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  },
  'postgres.js': (order, run) =>
    js.begin(async (tx) => {
      await tx`insert into public.orders values (${order})`
      await run(tx)
    }),
  'Drizzle on pg': (order, run) =>
    drizzlePg(pool).transaction(async (tx) => {
      await tx.execute(sql`insert into public.orders values (${order})`)
      await run(tx)
    }),
  'Drizzle on postgres.js': (order, run) =>
    drizzleJs(js).transaction(async (tx) => {
      await tx.execute(sql`insert into public.orders values (${order})`)
      await run(tx)
    }),
  Kysely: (order, run) =>
    new Kysely<{ orders: { id: string } }>({ dialect: new PostgresDialect({ pool }) })
      .transaction()
      .execute(async (tx) => {
        await tx.insertInto('orders').values({ id: order }).execute()
        await run(tx)
      }),
  // The client of Prisma needs a generated engine; this is what its transactions offer.
  'the raw queries of Prisma': (order, run) =>
    js.begin(async (tx) => {
      await tx`insert into public.orders values (${order})`
      await run({ $queryRawUnsafe: (text: string, ...values: string[]) => tx.unsafe(text, values) })
    }),
}

const HARD = `it's "quoted" \\ and \\u0041 $1 {x} ünï 🜚`

describe.each(Object.entries(libraries))('a transaction of %s', (name, within) => {
  const id = (what: string) => `${what} by ${name}`
  const orders = async () => (await pool.query('select id from public.orders')).rows.map((row) => row.id as string)

  it('takes the item with it when it commits', async () => {
    await within(id('kept'), async (tx) => {
      const input = JSON.stringify(HARD)
      const results = await ledger.enlist!(tx).commit([enqueue(item(id('kept'), { input, tags: ['x'] }))])
      expect(results).toEqual([{ kind: 'applied', closed: [] }])
      // It is not visible before.
      expect(await ledger.read([id('kept')])).toEqual([undefined])
    })
    expect((await ledger.read([id('kept')]))[0]).toMatchObject({ status: 'pending', envelope: { tags: ['x'] } })
    expect(await ledger.inspect!.input(id('kept'))).toBe(JSON.stringify(HARD))
    expect(await orders()).toContain(id('kept'))
    // Once more is harmless, inside another transaction too.
    await within(id('again'), async (tx) => {
      const results = await ledger.enlist!(tx).commit([enqueue(item(id('kept')))])
      expect(results).toEqual([{ kind: 'repeated', id: id('kept') }])
    })
  })

  it('takes nothing when it rolls back', async () => {
    const failing = within(id('undone'), async (tx) => {
      await ledger.enlist!(tx).commit([enqueue(item(id('undone')))])
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect(await ledger.read([id('undone')])).toEqual([undefined])
    expect(await orders()).not.toContain(id('undone'))
  })
})

describe('what is not a transaction', () => {
  it.each([
    ['nothing', () => undefined],
    ['a pool', () => pool],
    ['postgres.js outside of begin', () => js],
    ['Kysely outside of a transaction', () => new Kysely({ dialect: new PostgresDialect({ pool }) })],
    ['Drizzle on pg outside of a transaction', () => drizzlePg(pool)],
    ['Drizzle on postgres.js outside of a transaction', () => drizzleJs(js)],
    ['an object without its methods', () => ({})],
  ])('%s is refused', (_, tx) => {
    expect(() => ledger.enlist!(tx())).toThrow(expect.objectContaining({ code: 'BAD_TRANSACTION' }))
  })

  it('includes a client of pg before begin and after commit: nothing is enqueued', async () => {
    const client = await pool.connect()
    const commit = (id: string) => ledger.enlist!(client).commit([enqueue(item(id))])
    await expect(commit('too early')).rejects.toMatchObject({ code: 'BAD_TRANSACTION' })
    // A caller need not await a begin before it sends more.
    void client.query('begin')
    expect(await commit('in time')).toEqual([{ kind: 'applied', closed: [] }])
    await client.query('commit')
    await expect(commit('too late')).rejects.toMatchObject({ code: 'BAD_TRANSACTION' })
    client.release()
    const found = await ledger.read(['too early', 'in time', 'too late'])
    expect(found.map((view) => view?.status)).toEqual([undefined, 'pending', undefined])
  })
})

describe('work that is enqueued within a transaction', () => {
  it('runs when that has committed, and never if it has not', async () => {
    const ran: string[] = []
    const mail = defineWork('mail', async (input: { to: string }, ctx) => {
      ran.push(input.to)
      return ctx.result(input.to)
    })
    const own = await schemas.open()
    const w = createWork({ backend: own, work: [mail] as const })
    await w.start()
    await expect(
      libraries['pg']!('rolled back', async (tx) => {
        await w.enqueue(mail({ to: 'nobody' }), { tx }).accepted()
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    let handle: ReturnType<typeof w.enqueue> | undefined
    await libraries['pg']!('committed', async (tx) => {
      handle = w.enqueue(mail({ to: 'ada' }), { tx })
      await handle.accepted()
      return undefined
    })
    expect(await handle!.result()).toBe('ada')
    expect(ran).toEqual(['ada'])
    await w.stop()
    await schemas.close(own)
  })
})

describe('a wait for work that was enqueued within a transaction', () => {
  const mail = defineWork('mail', async (to: string, ctx) => ctx.result(to))

  it('rejects with NOT_STORED when the transaction was rolled back, or has not committed yet', async () => {
    const own = await schemas.open()
    const w = createWork({ backend: own, work: [mail] as const })
    let rolledBack: ReturnType<typeof w.enqueue> | undefined
    await expect(
      libraries['pg']!('undone with its mail', async (tx) => {
        rolledBack = w.enqueue(mail('bob'), { tx })
        await rolledBack.accepted()
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    const notStored = { code: 'NOT_STORED', message: expect.stringContaining('was rolled back') }
    await expect(rolledBack!.result()).rejects.toMatchObject(notStored)
    await expect(rolledBack!.group()).rejects.toMatchObject(notStored)
    expect(await rolledBack!.cancel()).toEqual({ kind: 'unknown' })
    for await (const _ of rolledBack!.watchProgress()) expect.unreachable()

    let open: ReturnType<typeof w.enqueue> | undefined
    await libraries['pg']!('open for a while', async (tx) => {
      open = w.enqueue(mail('ada'), { tx })
      await expect(open.result()).rejects.toMatchObject({
        ...notStored,
        message: expect.stringContaining('has not committed yet'),
      })
    })
    expect(await open!.result()).toBe('ada')
    await w.stop()
    await schemas.close(own)
  })

  it('rejects with RESULT_EXPIRED when it was stored, ended and was removed', async () => {
    const clock = new FakeClock({ resting: isResting })
    const own = schemas.make({ clock })
    const w = createWork({ backend: own, clock, work: [mail] as const, keepCompleted: 1_000 })
    const producer = createWork({ backend: own, clock, work: [mail] as const, autoStart: false })
    const soon = async <T>(promise: Promise<T>): Promise<T> => {
      promise.catch(() => undefined)
      await clock.advance(10_000)
      return promise
    }
    await soon(w.enqueue(mail('first')).result())
    const handles: WorkHandle[] = []
    for (const system of [w, producer]) {
      await libraries['pg']!(`expired ${handles.length}`, async (tx) => {
        const handle = system.enqueue(mail('ada'), { tx })
        handles.push(handle)
        await soon(handle.accepted())
      })
    }
    await clock.advance(60_000)
    // Records go when something else is written.
    await soon(w.enqueue(mail('another')).result())
    for (const handle of handles) await expect(soon(handle.result())).rejects.toMatchObject({ code: 'RESULT_EXPIRED' })
    await soon(w.stop())
    await schemas.close(own)
  })
})

describe('a pool all of whose connections are held by transactions', () => {
  it('enqueues in each of them, although nothing is known yet of the schema, its mode and its names', async () => {
    const small = new pg.Pool({ connectionString: schemas.url, max: 2 })
    const own = schemas.make({ pool: small })
    const cold = ledgerOn(own)
    const clients = await Promise.all([small.connect(), small.connect()])
    const enqueued = clients.map(async (client, i) => {
      await client.query('begin')
      const [result] = await cold.enlist!(client).commit([enqueue(item(`${i}`, { type: `type ${i}` }))])
      await client.query('commit')
      client.release()
      return result?.kind
    })
    expect(await Promise.all(enqueued)).toEqual(['applied', 'applied'])
    expect((await cold.read(['0', '1'])).map((view) => view?.status)).toEqual(['pending', 'pending'])
    await schemas.close(own)
    await small.end()
  })

  it('connects with the password of such a pool', async () => {
    const address = new URL(schemas.url)
    await pool.query("create role visitor login superuser password 'open sesame'")
    const small = new pg.Pool({
      host: address.hostname,
      port: Number(address.port),
      database: address.pathname.slice(1),
      user: 'visitor',
      password: 'open sesame',
      max: 1,
    })
    const driver = new PostgresDriver({ pool: small, prepare: true, clock: systemClock, onError: () => undefined })
    const given: unknown[] = []
    class Noting extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super(config)
        given.push(this.password)
      }
    }
    Object.assign(small, { Client: Noting })
    expect(await driver.apart.query({ name: '', text: 'select current_user::text' })).toEqual([['visitor']])
    expect(given).toEqual(['open sesame'])
    await driver.close()
    await small.end()
  })
})
