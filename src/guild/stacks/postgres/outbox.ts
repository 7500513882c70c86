import type { Clock } from '../../../core/time/clock.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { Ms } from '../../../core/time/time.js'
import { type PostgresDriver, type Row, type SqlValue, sqlStateOf } from '../../../drivers/postgres/index.js'
import type { Outbox, OutboxEntry, WatcherState, Writers } from '../backend.js'
import type { BookRef } from '../documents/names.js'
import type { Doc } from '../documents/value.js'
import { WatcherTakenError } from '../errors.js'
import type { ChangeEvent } from '../watch/events.js'

export interface PostgresOutboxOptions {
  readonly driver: PostgresDriver
  /** The quoted name of the schema. */
  readonly schema: string
  readonly channel: string
  readonly clock: Clock
}

/** Events for durable watchers, in the same database and the same transactions as the documents. */
export function postgresOutbox({ driver, schema, channel, clock }: PostgresOutboxOptions): Outbox {
  const query = <R extends Row>(text: string, ...values: readonly SqlValue[]) =>
    driver.query<R>({ name: '', text, values })
  /** Removes events that every watcher of their book has had. By the index (book, seq). */
  const sweep = async (owner: string, book: string): Promise<void> => {
    const least = `select min(cursor) from ${schema}.stacks_watcher where owner = $1 and book = $2`
    await query(
      `delete from ${schema}.stacks_outbox where book = $1 || '/' || $2
       and seq <= coalesce((${least}), 9223372036854775807)`,
      owner,
      book,
    )
  }
  return {
    async register(name, ref) {
      const text = `select owner, book from ${schema}.stacks_watcher where name = $1`
      const [known] = await query<[string, string]>(text, name)
      const [ownerId, book] = known ?? (await registerAlone(driver, clock, schema, name, ref))
      if (ownerId !== ref.ownerId || book !== ref.book) throw new WatcherTakenError(name, { ownerId, book })
    },
    async forget(name) {
      const text = `delete from ${schema}.stacks_watcher where name = $1 returning owner, book`
      const [gone] = await query<[string, string]>(text, name)
      if (gone !== undefined) await sweep(...gone)
    },
    async list() {
      const rows = await query<[string, string, string, number, string | null]>(
        `select name, owner, book,
           (select count(*)::int from ${schema}.stacks_outbox o where o.book = w.owner || '/' || w.book and o.seq > w.cursor),
           case when until > now() then holder end
         from ${schema}.stacks_watcher w order by name collate "C"`,
      )
      return rows.map(
        ([name, ownerId, book, behind, holder]): WatcherState => ({ name, ownerId, book, behind, holder }),
      )
    },
    async claim(name, holder, leaseMs) {
      const [row] = await query<[string]>(
        `update ${schema}.stacks_watcher set holder = $2, until = now() + $3 * interval '1 millisecond'
         where name = $1 and (holder is null or holder = $2 or until <= now()) returning cursor`,
        name,
        holder,
        leaseMs,
      )
      return row === undefined ? null : { cursor: Number(row[0]) }
    },
    async renew(name, holder, leaseMs) {
      const rows = await query(
        `update ${schema}.stacks_watcher set until = now() + $3 * interval '1 millisecond'
         where name = $1 and holder = $2 and until > now() returning 1`,
        name,
        holder,
        leaseMs,
      )
      return rows.length > 0
    },
    async isBehind(name) {
      const rows = await query(
        `select 1 from ${schema}.stacks_watcher w where name = $1 and exists
           (select 1 from ${schema}.stacks_outbox o where o.book = w.owner || '/' || w.book and o.seq > w.cursor)`,
        name,
      )
      return rows.length > 0
    },
    async read(name, cursor, max) {
      const rows = await query<[string, number, string]>(
        `select seq, hops, event from ${schema}.stacks_outbox
         where book = (select owner || '/' || book from ${schema}.stacks_watcher where name = $1) and seq > $2
         order by seq limit $3`,
        name,
        cursor,
        max,
      )
      return rows.map(
        ([seq, hops, event]): OutboxEntry => ({ seq: Number(seq), hops, event: JSON.parse(event) as ChangeEvent<Doc> }),
      )
    },
    async advance(name, holder, { from, to }, keep) {
      const [row] = await query<[string, string]>(
        `update ${schema}.stacks_watcher set cursor = $3, holder = $4 where name = $1 and holder = $2 and cursor = $5
         returning owner, book`,
        name,
        holder,
        to,
        keep ? holder : null,
        from,
      )
      if (row === undefined) return false
      await sweep(...row)
      return true
    },
    // After a gap some notifications may have been missed.
    onAppend: (wake) => driver.listen(channel, wake, wake),
  }
}

/** How long writers may be kept waiting by a registration, and how long it then lets them go on. */
const REGISTER_MS: Ms = 100
const PAUSE_MS: Ms = 200

/**
 * Waits for the transactions that are writing now, and makes those that come wait: a transaction that has begun does not see a
 * watcher that is registered after it, and its events would be missed. It waits in short pieces, so one transaction that
 * takes long keeps only this registration waiting, and not every writer that comes after it. Returns whose watcher has the
 * name now.
 */
async function registerAlone(
  driver: PostgresDriver,
  clock: Clock,
  schema: string,
  name: string,
  ref: BookRef,
): Promise<[string, string]> {
  for (;;) {
    try {
      return await tryRegister(driver, schema, name, ref)
    } catch (error) {
      if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE) throw error
      const release = clock.isReal === true ? keepAlive() : () => undefined
      await clock.sleep(PAUSE_MS).finally(release)
    }
  }
}

const LOCK_NOT_AVAILABLE = '55P03'

function tryRegister(driver: PostgresDriver, schema: string, name: string, ref: BookRef): Promise<[string, string]> {
  return driver.transaction(async (tx) => {
    await tx.query({
      name: '',
      text: `set local lock_timeout = ${REGISTER_MS}; lock table ${schema}.stacks_watcher in exclusive mode`,
    })
    await tx.query({
      name: '',
      text: `insert into ${schema}.stacks_watcher (name, owner, book, cursor)
         values ($1, $2, $3, coalesce(pg_sequence_last_value(pg_get_serial_sequence($4, 'seq')), 0))
         on conflict (name) do nothing`,
      values: [name, ref.ownerId, ref.book, `${schema}.stacks_outbox`],
    })
    const text = `select owner, book from ${schema}.stacks_watcher where name = $1`
    const [row] = await tx.query<[string, string]>({ name: '', text, values: [name] })
    return row!
  })
}

/** The processes that write to the store. */
export function postgresWriters(driver: PostgresDriver, schema: string): Writers {
  return {
    async register(instance: string, fingerprint: string, leaseMs: Ms) {
      await driver.query({
        name: '',
        text: `with gone as (delete from ${schema}.stacks_writer where until <= now() and instance <> $1)
          insert into ${schema}.stacks_writer (instance, fingerprint, until)
          values ($1, $2, now() + $3 * interval '1 millisecond')
          on conflict (instance) do update set until = excluded.until`,
        values: [instance, fingerprint, leaseMs],
      })
      const text = `select fingerprint from ${schema}.stacks_writer where instance <> $1 and until > now()`
      const rows = await driver.query<[string]>({ name: '', text, values: [instance] })
      return rows.map(([theirs]) => theirs)
    },
    async leave(instance: string) {
      await driver.query({
        name: '',
        text: `delete from ${schema}.stacks_writer where instance = $1`,
        values: [instance],
      })
    },
  }
}
