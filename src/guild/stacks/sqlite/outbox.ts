import type { Clock } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import type { Outbox, OutboxEntry, WatcherState, Writers } from '../backend.js'
import { bookKey } from '../documents/names.js'
import type { Doc } from '../documents/value.js'
import { WatcherTakenError } from '../errors.js'
import type { ChangeEvent } from '../watch/events.js'
import type { OnSession } from './reads.js'
import type { Session } from './session.js'

export interface SqliteOutboxOptions {
  readonly prefix: string
  readonly clock: Clock
  /** A read of what is committed. */
  readonly read: OnSession
  /** A separate write transaction. */
  readonly write: OnSession
  readonly onAppend: (wake: () => void) => () => void
}

/** Events for durable watchers, in the same file and the same transactions as the documents. */
export function sqliteOutbox({ prefix, clock, read, write, onAppend }: SqliteOutboxOptions): Outbox {
  /** Removes events that every watcher of their book has had. */
  const sweep = (session: Session, ownerId: string, book: string): void => {
    const sql = `select min(cursor) from ${prefix}_watcher where owner = ? and book = ?`
    const least = session.get<[number | null]>(sql, ownerId, book)?.[0] ?? Number.MAX_SAFE_INTEGER
    // By the index (book, seq).
    session.run(`delete from ${prefix}_outbox where book = ? and seq <= ?`, bookKey({ ownerId, book }), least)
  }
  return {
    register: (name, ref) =>
      write((session) => {
        const [owner, book] =
          session.get<[string, string]>(`select owner, book from ${prefix}_watcher where name = ?`, name) ?? []
        if (owner !== undefined && book !== undefined) {
          if (owner !== ref.ownerId || book !== ref.book) throw new WatcherTakenError(name, { ownerId: owner, book })
          return
        }
        const [last] = session.get<[number | null]>(
          `select max(seq) from sqlite_sequence where name = ?`,
          `${prefix}_outbox`,
        )!
        session.run(
          `insert into ${prefix}_watcher (name, owner, book, cursor, holder, until) values (?, ?, ?, ?, null, 0)`,
          name,
          ref.ownerId,
          ref.book,
          last ?? 0,
        )
      }),
    forget: (name) =>
      write((session) => {
        const sql = `delete from ${prefix}_watcher where name = ? returning owner, book`
        const [gone] = session.all<[string, string]>(sql, name)
        if (gone !== undefined) sweep(session, ...gone)
      }),
    list: () =>
      read((session) =>
        session
          .all<[string, string, string, number, string | null, number]>(
            `select name, owner, book,
               (select count(*) from ${prefix}_outbox o where o.book = w.owner || '/' || w.book and o.seq > w.cursor),
               holder, until
             from ${prefix}_watcher w order by name`,
          )
          .map(
            ([name, ownerId, book, behind, holder, until]): WatcherState => ({
              name,
              ownerId,
              book,
              behind,
              holder: until > clock.now() ? holder : null,
            }),
          ),
      ),
    claim: (name, holder, leaseMs) =>
      write((session) => {
        const now = clock.now()
        const row = session.get<[number]>(
          `update ${prefix}_watcher set holder = ?, until = ?
           where name = ? and (holder is null or holder = ? or until <= ?) returning cursor`,
          holder,
          now + leaseMs,
          name,
          holder,
          now,
        )
        return row === undefined ? null : { cursor: row[0] }
      }),
    renew: (name, holder, leaseMs) =>
      write((session) => {
        const now = clock.now()
        const row = session.get(
          `update ${prefix}_watcher set until = ? where name = ? and holder = ? and until > ? returning 1`,
          now + leaseMs,
          name,
          holder,
          now,
        )
        return row !== undefined
      }),
    // By the index (book, seq).
    isBehind: (name) =>
      read(
        (session) =>
          session.get(
            `select 1 from ${prefix}_watcher w where name = ? and exists
               (select 1 from ${prefix}_outbox o where o.book = w.owner || '/' || w.book and o.seq > w.cursor)`,
            name,
          ) !== undefined,
      ),
    read: (name, cursor, max) =>
      read((session) => {
        const sql = `select owner, book from ${prefix}_watcher where name = ?`
        const [ownerId, book] = session.get<[string, string]>(sql, name) ?? []
        if (ownerId === undefined || book === undefined) return []
        return session
          .all<[number, number, string]>(
            `select seq, hops, event from ${prefix}_outbox where book = ? and seq > ? order by seq limit +?`,
            bookKey({ ownerId, book }),
            cursor,
            max,
          )
          .map(([seq, hops, event]): OutboxEntry => ({ seq, hops, event: JSON.parse(event) as ChangeEvent<Doc> }))
      }),
    advance: (name, holder, { from, to }, keep) =>
      write((session) => {
        const row = session.get<[string, string]>(
          `update ${prefix}_watcher set cursor = ?, holder = ? where name = ? and holder = ? and cursor = ?
           returning owner, book`,
          to,
          keep ? holder : null,
          name,
          holder,
          from,
        )
        if (row === undefined) return false
        sweep(session, ...row)
        return true
      }),
    onAppend,
  }
}

/** The processes that write to the file. */
export function sqliteWriters(prefix: string, clock: Clock, write: OnSession): Writers {
  return {
    register: (instance: string, fingerprint: string, leaseMs: Ms) =>
      write((session) => {
        const now = clock.now()
        session.run(`delete from ${prefix}_writer where until <= ?`, now)
        session.run(
          `insert into ${prefix}_writer (instance, fingerprint, until) values (?, ?, ?)
           on conflict (instance) do update set until = excluded.until`,
          instance,
          fingerprint,
          now + leaseMs,
        )
        const sql = `select fingerprint from ${prefix}_writer where instance <> ?`
        return session.all<[string]>(sql, instance).map(([theirs]) => theirs)
      }),
    leave: (instance: string) =>
      write((session) => void session.run(`delete from ${prefix}_writer where instance = ?`, instance)),
  }
}
