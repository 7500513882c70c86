import { newToken } from '../../core/ids.js'
import type { At, Ms } from '../../core/time.js'
import type { SqliteConnection } from '../../drivers/sqlite/connection.js'
import type { Ledger } from '../../ports/ledger.js'
import { claimReady } from './claim.js'
import { commitBatch } from './commit.js'
import type { Enlist } from './enlist.js'
import { extendLeases } from './extend.js'
import { inspectOn } from './inspect.js'
import type { Leases } from './leases.js'
import type { ModeMark } from './mode.js'
import type { Signals } from './signals.js'
import type { Statements } from './sql.js'
import { WATCHED } from './states.js'
import type { Sweeper } from './sweep.js'
import { Told } from './told.js'
import { viewOf } from './view.js'

/** What the ledger and the ports of one backend share. */
export interface Parts {
  readonly connection: SqliteConnection<Statements>
  readonly signals: Signals
  readonly sweeper: Sweeper
  readonly maxItemBytes: number
  readonly mode: ModeMark
  readonly leases: Leases
}

/** Writes, sweeps a little, leaves word for other processes, and tells our own listeners once it is written. */
export async function writeAndTell<T>(
  { connection, signals, sweeper }: Parts,
  run: (sql: Statements, now: At, told: Told) => T,
): Promise<T> {
  const { result, told, now, swept } = await connection.write((sql, at) => {
    const news = new Told()
    const written = run(sql, at, news)
    signals.leaveWord(sql, news, at)
    return { result: written, told: news, now: at, swept: sweeper.step(sql, at) }
  })
  swept?.()
  sweeper.note(told.removed)
  signals.tell(told, now)
  return result
}

/** The native ledger of the SQLite backend: each verb is one transaction, which it shares with the others of its turn. */
export function sqliteLedger(parts: Parts, enlist: Enlist): Ledger {
  const { connection, signals, sweeper, maxItemBytes, mode, leases } = parts
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    claim: async (ask) => {
      for (const { queue } of ask.from) signals.claimsFrom(queue)
      // Whoever asks for nothing only wants to know what time it is.
      if (ask.from.length === 0) return connection.read((_, at) => ({ items: [], more: false, at }))
      const token = `${newToken()}.`
      const reply = await writeAndTell(parts, (sql, now, told) => {
        mode.say(sql, 'native')
        return claimReady(sql, ask, token, now, leases, told)
      })
      const removed = sweeper.takeUntold()
      return removed === 0 ? reply : { ...reply, removed }
    },
    extend: (held, leaseMs, me) =>
      connection.write((sql, now) => extendLeases(sql, held, durationOf(leaseMs), me, maxItemBytes, now, leases)),
    leave: (worker) => connection.write((sql) => void sql.dropWorker.run(worker)),
    commit: async (batch) => {
      if (batch.length === 0) return []
      return writeAndTell(parts, (sql, now, told) => {
        mode.say(sql, 'native')
        return commitBatch(sql, batch, now, leases, maxItemBytes, told)
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
          const row = sql.group.get(id, now) ?? sql.alone.get(id, now)
          if (row === undefined) return undefined
          const [open, value, final, version] = row
          return { ...(value === null ? {} : { value }), final: final === 1, version, open }
        }),
      ),
    watch: (inbox, { ids, groups }) =>
      connection.write((sql, now) => {
        for (const id of ids) watchItem(sql, id, inbox, 'i')
        // Whoever asks reads again afterwards: a group that has closed needs no watcher.
        for (const id of groups) {
          if (sql.watchGroup.run(id) > 0) sql.addWatcher.run('g', id, inbox)
          else if (sql.alone.get(id, now)?.[0] === 1) watchItem(sql, id, inbox, 'g')
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
        const rows = sql.pauses.all().filter(([, , isOver]) => isOver === 0)
        const named = (of: 'queue' | 'type') => rows.flatMap(([what, name]) => (what === of ? [name] : []))
        return { queues: named('queue'), types: named('type') }
      }),
    onReady: (wake) => signals.onReady(wake),
    onInbox: (inbox, hear) => signals.onInbox(inbox, hear),
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
