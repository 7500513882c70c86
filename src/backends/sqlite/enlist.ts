import { realpathSync } from 'node:fs'
import { MillraceError } from '../../core/error.js'
import type { Clock } from '../../core/time/clock.js'
import type { SqliteDatabase } from '../../drivers/sqlite/database.js'
import { overSqlite } from '../../drivers/sqlite/open.js'
import type { Ledger } from '../../ports/ledger.js'
import type { CommitResult } from '../../ports/settlement.js'
import { Notifications } from '../shared/notifications.js'
import { commitBatch } from './commit.js'
import type { Leases } from './lease.js'
import type { Notifier } from './notify.js'
import { prepareStatements, type Statements } from './sql.js'
import type { Tables } from './tables.js'

export type Enlist = NonNullable<Ledger['enlist']>

interface EnlistOptions {
  readonly file: string
  readonly tables: Tables
  readonly clock: Clock
  readonly leases: Leases
  readonly notifier: Notifier
  readonly maxItemBytes: number
}

/**
 * Commits inside the user's own transaction: what is enqueued there happens if it commits, and not otherwise. Everything is
 * done before `commit` returns its promise, because a transaction of better-sqlite3 ends with the function it wraps. This
 * process and others notice by the change of the file, as they notice each other.
 */
export function enlistOn({ file, tables, clock, leases, notifier, maxItemBytes }: EnlistOptions): Enlist {
  const known = new WeakMap<object, { readonly db: SqliteDatabase; readonly sql: Statements }>()
  const statementsOf = (tx: unknown) => {
    const found = typeof tx === 'object' && tx !== null ? known.get(tx) : undefined
    if (found !== undefined) return found
    const db = overSqlite(tx)
    if (db === undefined) throw badTransaction('it is no open database of better-sqlite3 or node:sqlite')
    checkFile(db, file)
    const made = { db, sql: prepared(db, tables) }
    known.set(tx as object, made)
    return made
  }
  return (tx) => {
    const { db, sql } = statementsOf(tx)
    return {
      commit: (batch) => {
        if (!db.inTransaction) throw badTransaction('it is not inside a transaction')
        const now = clock.now()
        const notifications = new Notifications()
        const results = commitBatch(sql, batch, now, leases, maxItemBytes, notifications)
        // Later would be too late: the transaction would commit without it.
        for (const result of results) if (result.kind === 'refused') throw refused(result)
        notifier.store(sql, notifications, now)
        return Promise.resolve(results)
      },
    }
  }
}

/** The tables are made by the backend's own connection: a transaction of the user's is no place to make them in. */
function prepared(db: SqliteDatabase, tables: Tables): Statements {
  try {
    return prepareStatements(db, tables)
  } catch (cause) {
    throw badTransaction(
      'its file has no tables of this backend yet: await backend.migrate() before the first transaction',
      cause,
    )
  }
}

function checkFile(db: SqliteDatabase, file: string): void {
  const main = db
    .prepare<[], readonly [string | null]>("select file from pragma_database_list where name = 'main'")
    .get()
  const theirs = main?.[0] ?? ''
  if (theirs === '' || realpathSync(theirs) !== realpathSync(file))
    throw badTransaction(`it is on another file ("${theirs}") than the backend ("${file}")`)
}

function refused({ code, message, limit }: Extract<CommitResult, { kind: 'refused' }>): MillraceError {
  return new MillraceError(code, message, { facts: { limit } })
}

function badTransaction(why: string, cause?: unknown): MillraceError {
  return new MillraceError(
    'BAD_TRANSACTION',
    `This cannot be enqueued with { tx }: ${why}. Give the better-sqlite3 database that is open on the backend's own file, ` +
      'from within its transaction(): db.transaction(() => { …; work.enqueue(w, { tx: db }) })().',
    cause === undefined ? {} : { cause },
  )
}
