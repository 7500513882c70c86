import { newToken } from '../../core/ids.js'
import type { Ms } from '../../core/time/time.js'
import type { Ledger } from '../../ports/ledger.js'
import { isOnlyLogged } from '../shared/is-only-logged.js'
import { claimReady } from './claim.js'
import { commitBatch } from './commit.js'
import { type SqliteContext, writeAndNotify } from './context.js'
import type { Enlist } from './enlist.js'
import { inspectOn } from './inspect.js'
import { WATCHED } from './item-flags.js'
import { extendLeases } from './lease.js'
import { viewOf } from './read.js'
import type { Statements } from './sql.js'

/** The native ledger of the SQLite backend: each verb is one transaction, which it shares with the others of its turn. */
export function sqliteLedger(context: SqliteContext, enlist: Enlist): Ledger {
  const { connection, notifier, sweeper, maxItemBytes, mode, leases } = context
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    claim: async (ask) => {
      for (const { queue } of ask.queues) notifier.claimsFrom(queue)
      // A claim from no queue only asks for the time.
      if (ask.queues.length === 0) return connection.read((_, now) => ({ items: [], more: false, now }))
      const token = `${newToken()}.`
      const reply = await writeAndNotify(context, (sql, now, notifications) => {
        mode.check(sql, 'native')
        return claimReady(sql, ask, token, now, leases, notifications)
      })
      const removed = sweeper.takeUnreported()
      return removed === 0 ? reply : { ...reply, removed }
    },
    extend: (held, leaseMs, me) =>
      connection.write((sql, now) => extendLeases(sql, held, durationOf(leaseMs), me, maxItemBytes, now, leases)),
    removeWorker: (worker) => connection.write((sql) => void sql.dropWorker.run(worker)),
    commit: async (batch) => {
      if (batch.length === 0) return []
      return writeAndNotify(context, (sql, now, notifications) => {
        if (!isOnlyLogged(batch)) mode.check(sql, 'native')
        return commitBatch(sql, batch, now, leases, maxItemBytes, notifications)
      })
    },
    read: (ids) =>
      connection.readTogether((sql, now) => {
        const leaseEnd = leases.reader(sql, now)
        return ids.map((id) => {
          const row = sql.view.get(id)
          return row === undefined ? undefined : viewOf(row, now, leaseEnd)
        })
      }),
    groups: (ids) =>
      connection.readTogether((sql, now) =>
        ids.map((id) => {
          const row = sql.group.get(id, now) ?? sql.single.get(id, now)
          if (row === undefined) return undefined
          const [open, value, final, version] = row
          return { ...(value === null ? {} : { value }), final: final === 1, version, open }
        }),
      ),
    watch: (inbox, { itemIds, groupIds }) =>
      connection.write((sql, now) => {
        for (const id of itemIds) watchItem(sql, id, inbox, 'i')
        // The caller reads again afterwards: a group that has closed needs no watcher.
        for (const id of groupIds) {
          if (sql.watchGroup.run(id) > 0) sql.addWatcher.run('g', id, inbox)
          else if (sql.single.get(id, now)?.[0] === 1) watchItem(sql, id, inbox, 'g')
        }
      }),
    schedules: (names) =>
      connection.read((sql) =>
        names.map((name) => {
          const [nextAt, spec] = sql.schedule.get(name) ?? []
          return nextAt === undefined || spec === undefined ? undefined : { spec, nextAt }
        }),
      ),
    paused: () =>
      connection.read((sql) => {
        const rows = sql.pauses.all().filter(([, , isResumed]) => isResumed === 0)
        const named = (of: 'queue' | 'type') => rows.flatMap(([what, name]) => (what === of ? [name] : []))
        return { queues: named('queue'), types: named('type') }
      }),
    onReady: (wake) => notifier.listeners.onReady(wake),
    onInbox: (inbox, listener) => notifier.listeners.onInbox(inbox, listener),
    inspect: inspectOn(connection, leases),
    enlist,
  }
}

function watchItem(sql: Statements, id: string, inbox: string, kind: 'i' | 'g'): void {
  const row = sql.itemRow.get(id)
  if (row === undefined) return
  sql.setFlags.run(WATCHED, row[0])
  sql.addWatcher.run(kind, id, inbox)
}

function durationOf(ms: Ms): Ms {
  return ms > 0 ? ms : 0
}
