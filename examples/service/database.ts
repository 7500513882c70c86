// The shop's own tables, beside those of Millrace: in one SQLite file, or in one Postgres database.
import Database from 'better-sqlite3'
import type { Backend } from 'millrace'
import { postgresBackend } from 'millrace/postgres'
import { sqliteBackend } from 'millrace/sqlite'
import pg from 'pg'
import type { Order } from './jobs.js'

const TABLES = `
  create table if not exists orders (id text primary key, tenant text not null, cents integer not null);
  create table if not exists charges (key text primary key, tenant text not null, cents integer not null);
`
// A client that posts an order again gets the same job.
const ADD_ORDER = 'insert into orders (id, tenant, cents) values ($1, $2, $3) on conflict do nothing'
const ADD_CHARGE = 'insert into charges (key, tenant, cents) values ($1, $2, $3) on conflict do nothing'
const OWED = 'select sum(cents) as cents from orders where tenant = $1'
const CREDIT_LIMIT = 1_000_000

export class OverLimitError extends Error {}

export interface Shop {
  readonly backend: Backend & { close(): Promise<void> }
  /** Writes the order, and whatever `add` adds to the same transaction: both, or neither. */
  place(order: Order, add: (tx: unknown) => Promise<unknown>): Promise<void>
  /** Charges an order, once for each key. */
  charge(key: string, order: Order): Promise<void>
  countCharges(): Promise<number>
  close(): Promise<void>
}

/** `postgres://…`, or the path of a SQLite file. */
export const openShop = (address: string): Promise<Shop> =>
  address.startsWith('postgres') ? onPostgres(address) : onSqlite(address)

async function onSqlite(file: string): Promise<Shop> {
  const db = new Database(file)
  db.exec(TABLES)
  const backend = sqliteBackend({ file })
  await backend.migrate() // makes its tables: the first transaction needs them
  const prepare = (sql: string) => db.prepare(sql.replaceAll(/\$\d/g, '?'))
  const place = db.transaction((order: Order, add: (tx: unknown) => unknown) => {
    prepare(ADD_ORDER).run(order.id, order.tenant, order.cents)
    add(db) // throws here when it is refused, and rolls back the order
    checkLimit(prepare(OWED).get(order.tenant))
  })
  return {
    backend,
    place: async (order, add) => place.immediate(order, add),
    charge: async (key, { tenant, cents }) => void prepare(ADD_CHARGE).run(key, tenant, cents),
    countCharges: async () => (db.prepare('select count(*) as n from charges').get() as { n: number }).n,
    close: async () => {
      await backend.close()
      db.close()
    },
  }
}

async function onPostgres(connectionString: string): Promise<Shop> {
  const pool = new pg.Pool({ connectionString })
  await pool.query(`select pg_advisory_xact_lock(1); ${TABLES}`) // web and worker may start together
  const backend = postgresBackend({ pool, schema: 'work' })
  return {
    backend,
    async place(order, add) {
      const tx = await pool.connect()
      try {
        await tx.query('begin')
        await tx.query(ADD_ORDER, [order.id, order.tenant, order.cents])
        await add(tx)
        checkLimit((await tx.query(OWED, [order.tenant])).rows[0])
        await tx.query('commit')
      } catch (error) {
        await tx.query('rollback')
        throw error
      } finally {
        tx.release()
      }
    },
    charge: async (key, { tenant, cents }) => void (await pool.query(ADD_CHARGE, [key, tenant, cents])),
    countCharges: async () => Number((await pool.query('select count(*) as n from charges')).rows[0].n),
    close: async () => {
      await backend.close()
      await pool.end()
    },
  }
}

function checkLimit(owed: unknown): void {
  if (Number((owed as { cents: unknown }).cents) > CREDIT_LIMIT) throw new OverLimitError('over the credit limit')
}
