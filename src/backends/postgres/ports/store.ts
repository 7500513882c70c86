import type { Random } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import { type Queryable, sqlStateOf } from '../../../drivers/postgres/index.js'
import type { FullStore } from '../../../ports/full-ports.js'
import { finiteStep, notANumber } from '../../shared/counter-value.js'
import { withHidden } from '../../shared/hidden.js'
import type { Connection } from '../connection.js'
import { withNow } from '../read.js'
import { checkText, givenDuration, indexKey } from '../storable.js'

/** Keys and values in a table. */
export type PostgresStore = FullStore

/** Every so many writes, expired keys are removed, at most so many. */
const SWEEP_EVERY = 64
const SWEEP_STEP = 256
const INVALID_TEXT = '22P02'

// All by the primary key. $1 is always the time; an expired entry counts as absent.
const EXPIRY = (ttl: string) => `case when ${ttl}::bigint > 0 then {now} + ${ttl}::bigint end`
const GET = withNow(
  'select key, value from {schema}.store where key = any($2) and (expires_at is null or expires_at > {now})',
  '$1',
)
const SET = withNow(
  `insert into {schema}.store (key, value, expires_at)
   select distinct on (e.key) e.key, e.value, ${EXPIRY('e.ttl')} from json_to_recordset($2::json) e(n int, key text, value text, ttl bigint)
    order by e.key, e.n desc
   on conflict (key) do update set value = excluded.value, expires_at = excluded.expires_at`,
  '$1',
)
const DELETE = 'delete from {schema}.store where key = $1'
const SET_IF_ABSENT = withNow(
  `insert into {schema}.store as s (key, value, expires_at) values ($2, $3, ${EXPIRY('$4')})
   on conflict (key) do update set value = excluded.value, expires_at = excluded.expires_at
     where s.expires_at is not null and s.expires_at <= {now}
   returning 1`,
  '$1',
)
const INCREMENT = withNow(
  `insert into {schema}.store as s (key, value, expires_at) values ($2, $3::numeric::text, ${EXPIRY('$4')})
   on conflict (key) do update set
     value = case when s.expires_at is not null and s.expires_at <= {now} then excluded.value
                  else (s.value::numeric + excluded.value::numeric)::text end,
     expires_at = case when $4::bigint > 0 then excluded.expires_at
                       when s.expires_at is not null and s.expires_at <= {now} then null else s.expires_at end
   returning value`,
  '$1',
)
const REPLACE = withNow(
  `update {schema}.store set value = $4, expires_at = ${EXPIRY('$5')}
    where key = $2 and value = $3 and (expires_at is null or expires_at > {now}) returning 1`,
  '$1',
)
const SWEEP = 'select {schema}.sweep_store({schema}.at($1), $2)'

/** The plain port of the store. */
export function storePort(connection: Connection, maxBytes: number, random: Random = Math.random): PostgresStore {
  // From any number on: programs that write little and end soon would never come to the first sweep.
  let writes = Math.floor(random() * SWEEP_EVERY)
  const ttlOf = (method: string, ttl: Ms | undefined) => givenDuration(`${method}.ttl`, ttl)
  const keyOf = (method: string, key: unknown) => indexKey(checkText(method, 'key', key, Number.POSITIVE_INFINITY))
  const query = (name: string, text: string, values: (string | number | string[] | null)[]) =>
    connection.inOrder(async () => {
      const { driver, sql } = await connection.ready()
      return driver.query(sql(name, text, values))
    })
  const wrote = async (): Promise<void> => {
    writes += 1
    if (writes % SWEEP_EVERY === 0) await query('sweep_store', SWEEP, [connection.now(), SWEEP_STEP])
  }
  const getMany: PostgresStore['getMany'] = async (keys) => {
    if (keys.length === 0) return []
    const wanted = keys.map((key) => keyOf('get', key))
    const rows = (await query('get', GET, [connection.now(), wanted])) as [string, string][]
    const found = new Map(rows)
    return wanted.map((key) => found.get(key))
  }
  const setMany: PostgresStore['setMany'] = async (entries) => {
    const rows = entries.map(({ key, value, ttl }, n) => ({
      n,
      key: keyOf('set', key),
      value: checkText('set', 'value', value, maxBytes),
      ttl: ttlOf('set', ttl),
    }))
    if (rows.length === 0) return
    await query('set', SET, [connection.now(), JSON.stringify(rows)])
    await wrote()
  }
  const port = {
    get: async (key: string) => (await getMany([key]))[0],
    set: (key: string, value: string, ttl?: Ms) => setMany([{ key, value, ...(ttl === undefined ? {} : { ttl }) }]),
    async delete(key: string): Promise<void> {
      await query('delete', DELETE, [keyOf('delete', key)])
    },
    async setIfNotExists(key: string, value: string, ttl?: Ms): Promise<boolean> {
      checkText('setIfNotExists', 'value', value, maxBytes)
      const values = [connection.now(), keyOf('setIfNotExists', key), value, ttlOf('setIfNotExists', ttl)]
      const rows = await query('set_if_absent', SET_IF_ABSENT, values)
      await wrote()
      return rows.length > 0
    },
    async increment(key: string, by: number, ttl?: Ms): Promise<number> {
      const values = [connection.now(), keyOf('increment', key), finiteStep(key, by), ttlOf('increment', ttl)]
      const [row] = (await query('increment', INCREMENT, values).catch(asNotANumber(key))) as [string][]
      await wrote()
      return Number(row?.[0])
    },
  }
  return withHidden(port, {
    async incrementOnce(counter: string, marker: string, by: number, ttl?: Ms) {
      const { driver, sql } = await connection.ready()
      const now = connection.now()
      const ttlMs = ttlOf('incrementOnce', ttl)
      const step = async (tx: Queryable) => {
        const won = await tx.query(
          sql('set_if_absent', SET_IF_ABSENT, [now, keyOf('incrementOnce', marker), '1', ttlMs]),
        )
        if (won.length > 0) {
          const [row] = await tx.query<[string]>(
            sql('increment', INCREMENT, [now, keyOf('incrementOnce', counter), by, ttlMs]),
          )
          return { value: Number(row?.[0]), applied: true }
        }
        const [row] = await tx.query<[string, string]>(sql('get', GET, [now, [keyOf('incrementOnce', counter)]]))
        return { value: Number(row?.[1] ?? 0), applied: false }
      }
      finiteStep(counter, by)
      return connection.inOrder(() => driver.transaction(step)).catch(asNotANumber(counter))
    },
    async compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms): Promise<boolean> {
      if (expected === undefined) return port.setIfNotExists(key, next, ttl)
      checkText('compareAndSet', 'next', next, maxBytes)
      checkText('compareAndSet', 'expected', expected, Number.POSITIVE_INFINITY)
      const values = [connection.now(), keyOf('compareAndSet', key), expected, next, ttlOf('compareAndSet', ttl)]
      const rows = await query('replace', REPLACE, values)
      await wrote()
      return rows.length > 0
    },
    getMany,
    setMany,
  })
}

/** The server could not read what is stored there as a number. */
function asNotANumber(key: string): (error: unknown) => never {
  return (error) => {
    throw sqlStateOf(error) === INVALID_TEXT ? notANumber(key, 'what it holds', error) : error
  }
}
