import { enlisted, isLocked } from '../../drivers/postgres/index.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Announcer } from './announcer.js'
import { Claimer } from './claim.js'
import { Committer } from './commit.js'
import type { Connection } from './connection.js'
import { inspectSchema } from './inspect.js'
import { extendLeases } from './lease.js'
import type { Names } from './names.js'
import type { Notifier } from './notify.js'
import { type ViewRow, viewFrom } from './read.js'
import { isUnstorable } from './storable.js'

const READ = 'select * from {schema}.read_items($1, $2)'
const GROUPS = 'select * from {schema}.read_groups($1, $2)'
// By the primary key.
const SCHEDULES = 'select name, spec, next_at from {schema}.schedule where name = any($1)'
const PAUSED = 'select key from {schema}.pause where not is_resumed'
const LEAVE = 'delete from {schema}.worker where id = $1'
const WATCH = 'select {schema}.watch_for($1, $2, $3, $4)'

/** The native ledger: each call is one statement, and each settlement of a commit is atomic and fenced. */
export function postgresLedger(
  connection: Connection,
  names: Names,
  notifier: Notifier,
  announcer: Announcer,
  maxItemBytes: number,
): Ledger {
  const committer = new Committer(connection, names, announcer, maxItemBytes)
  const claimer = new Claimer(connection, names, committer)
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    claim: (ask) => {
      for (const { queue } of ask.queues) notifier.serves(queue)
      return claimer.claim(ask)
    },
    extend: (held, leaseMs, me) => extendLeases(connection, held, leaseMs, me, maxItemBytes),
    removeWorker: async (worker) => {
      const { driver, sql } = await connection.ready()
      await driver.query(sql('leave', LEAVE, [worker]))
    },
    commit: async (batch) => {
      // Listeners that registered before are notified, also if their connection is still being opened.
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
    schedules: async (asked) => {
      const { driver, sql } = await connection.ready()
      const wanted = asked.filter((name) => !isUnstorable(name))
      const rows = await driver.query<[string, string, string]>(sql('schedules_of', SCHEDULES, [wanted]))
      const found = new Map(rows.map(([name, spec, nextAt]) => [name, { spec, nextAt: Number(nextAt) }]))
      return asked.map((name) => found.get(name))
    },
    paused: async () => {
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string]>(sql('paused', PAUSED))
      const named = (what: string) => rows.flatMap(([key]) => (key.startsWith(what) ? [key.slice(what.length)] : []))
      return { queues: named('queue:'), types: named('type:') }
    },
    watch: async (inbox, { itemIds, groupIds }) => {
      const { driver, sql } = await connection.ready()
      const storable = (texts: readonly string[]) => texts.filter((text) => !isUnstorable(text))
      try {
        await driver.query(sql('watch', WATCH, [connection.now(), inbox, storable(itemIds), storable(groupIds)]))
      } catch (error) {
        // A user's transaction holds one of them. Waiters poll as well.
        if (!isLocked(error)) throw error
      }
    },
    onReady: (wake) => notifier.onReady(wake),
    onInbox: (inbox, onNotification) => notifier.onInbox(inbox, onNotification),
    inspect: inspectSchema(connection),
    enlist: (tx) => {
      const transaction = enlisted(tx)
      return { commit: (batch) => committer.enlist(batch, transaction) }
    },
  }
}
