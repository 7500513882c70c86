import { writeEndless } from '../../core/endless-json.js'
import type { Ms } from '../../core/time.js'
import { enlisted, isLocked } from '../../drivers/postgres/index.js'
import type { LeaseWord, Ledger, Worker } from '../../ports/ledger.js'
import { Claimer } from './claim.js'
import { Committer } from './commit.js'
import type { Connection } from './connection.js'
import { wholeMs } from './durations.js'
import { inspectSchema } from './inspect.js'
import type { Names } from './names.js'
import { isUnstorable } from './refusal.js'
import type { Signals } from './signals.js'
import { type ViewRow, viewFrom } from './view.js'

type Held = Parameters<Ledger['extend']>[0]

const READ = 'select * from {schema}.read_items($1, $2)'
const GROUPS = 'select * from {schema}.read_groups($1, $2)'
// By the primary key.
const SCHEDULES = 'select name, spec, next_at from {schema}.schedule where name = any($1)'
const PAUSED = 'select key from {schema}.pause where not is_over'
const EXTEND = 'select {schema}.extend_leases($1, $2, $3, $4, $5, $6, $7, $8)'
const LEAVE = 'delete from {schema}.worker where id = $1'
const WATCH = 'select {schema}.watch_for($1, $2, $3, $4)'

/** The native ledger: each call is one statement, and each settlement of a commit is atomic and fenced. */
export function postgresLedger(connection: Connection, numbers: Names, signals: Signals, maxItemBytes: number): Ledger {
  const committer = new Committer(connection, numbers, maxItemBytes)
  const claimer = new Claimer(connection, numbers, committer)
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    claim: (ask) => {
      for (const { queue } of ask.from) signals.serves(queue)
      return claimer.claim(ask)
    },
    extend: (held, leaseMs, me) => extend(connection, held, leaseMs, me, maxItemBytes),
    leave: async (worker) => {
      const { driver, sql } = await connection.ready()
      await driver.query(sql('leave', LEAVE, [worker]))
    },
    commit: async (batch) => {
      // Who listens already hears of it, also if the listening connection is still on its way.
      await connection.driver.listening()
      return committer.commit(batch)
    },
    read: async (ids) => {
      const { driver, sql } = await connection.ready()
      const wanted = ids.filter((id) => !isUnstorable(id))
      const rows = await driver.query<[string]>(sql('read', READ, [wanted, connection.now()]))
      const found = new Map(
        rows.map(([text]) => {
          const row = JSON.parse(text) as ViewRow
          return [row.id, viewFrom(row)]
        }),
      )
      return ids.map((id) => found.get(id))
    },
    groups: async (ids) => {
      const { driver, sql } = await connection.ready()
      const wanted = ids.filter((id) => !isUnstorable(id))
      const rows = await driver.query<[string, number, string | null, boolean, number]>(
        sql('groups', GROUPS, [wanted, connection.now()]),
      )
      const found = new Map(
        rows.map(([id, open, value, final, version]) => [
          id,
          { ...(value === null ? {} : { value }), open, final, version },
        ]),
      )
      return ids.map((id) => found.get(id))
    },
    schedules: async (names) => {
      const { driver, sql } = await connection.ready()
      const wanted = names.filter((name) => !isUnstorable(name))
      const rows = await driver.query<[string, string, string]>(sql('schedules_of', SCHEDULES, [wanted]))
      const found = new Map(rows.map(([name, spec, nextAt]) => [name, { spec, nextAt: Number(nextAt) }]))
      return names.map((name) => found.get(name))
    },
    paused: async () => {
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string]>(sql('paused', PAUSED))
      const named = (what: string) => rows.flatMap(([key]) => (key.startsWith(what) ? [key.slice(what.length)] : []))
      return { queues: named('queue:'), types: named('type:') }
    },
    watch: async (inbox, { ids, groups }) => {
      const { driver, sql } = await connection.ready()
      const storable = (texts: readonly string[]) => texts.filter((text) => !isUnstorable(text))
      try {
        await driver.query(sql('watch', WATCH, [connection.now(), inbox, storable(ids), storable(groups)]))
      } catch (error) {
        // A user's transaction holds one of them. Who waits looks from time to time as well.
        if (!isLocked(error)) throw error
      }
    },
    onReady: (wake) => signals.onReady(wake),
    onInbox: (inbox, hear) => signals.onInbox(inbox, hear),
    inspect: inspectSchema(connection),
    enlist: (tx) => {
      const transaction = enlisted(tx)
      return { commit: (batch) => committer.enlist(batch, transaction) }
    },
  }
}

async function extend(
  connection: Connection,
  held: Held,
  leaseMs: Ms,
  me: Worker,
  maxProgressBytes: number,
): Promise<readonly LeaseWord[]> {
  const { driver, sql } = await connection.ready()
  // One lease may be listed twice; the server updates a row once.
  const places = new Map<string, number>()
  const sent: Held[number][] = []
  const placeOf = held.map((one) => {
    const key = `${one.lease.id}\0${one.lease.token}`
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, sent.length)
    sent.push(one)
    return sent.length - 1
  })
  const { id, ...told } = me
  // The engine has checked the size and told its author; here it only must not pile up.
  const progress = sent.map(({ progress: text }) =>
    text !== undefined && text.length <= maxProgressBytes && !isUnstorable(text) ? text : null,
  )
  const [row] = await driver.query<[string]>(
    sql('extend', EXTEND, [
      connection.now(),
      sent.map(({ lease }) => lease.id),
      sent.map(({ lease }) => lease.token),
      sent.map(({ running }) => running),
      progress,
      wholeMs(leaseMs),
      id,
      writeEndless(told),
    ]),
  )
  const { held: known, unknown } = JSON.parse(row![0]) as ExtendReply
  const words = new Map([...(known ?? []), ...(unknown ?? [])].map(([n, word]) => [n - 1, word]))
  return placeOf.map((place) => words.get(place) ?? 'lost')
}

interface ExtendReply {
  readonly held?: readonly [place: number, word: LeaseWord][] | null
  readonly unknown?: readonly [place: number, word: LeaseWord][] | null
}
