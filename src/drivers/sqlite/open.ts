import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Ms } from '../../core/time/time.js'
import { isBetterSqlite3, loadBetterSqlite3, openBetterSqlite3, overBetterSqlite3 } from './better-sqlite3.js'
import type { SqliteDatabase } from './database.js'
import { isBusy, SqliteMissingError, SqliteOpenError } from './errors.js'
import { readHeader } from './header.js'
import { isNodeSqlite, loadNodeSqlite, openNodeSqlite, overNodeSqlite } from './node-sqlite.js'
import { cannotKeepLog, openUnchanging } from './unchanging.js'

export interface OpenSqliteOptions {
  /** How long SQLite itself waits for a lock, with the event loop blocked. */
  readonly busyMs: Ms
  /** NORMAL: a power cut may take the last transactions, never break the file. FULL: nothing that was accepted is lost. */
  readonly synchronous: 'normal' | 'full'
  /** How much of the file this connection keeps in memory, in KiB. Default: 64 MiB. */
  readonly cacheKib?: number
  /** Which library. Default: better-sqlite3 where it loads, else Node's own. */
  readonly driver?: 'better-sqlite3' | 'node:sqlite'
  /** Called with every statement, for tests that count. Only better-sqlite3 supports it. */
  readonly onStatement?: (sql: string) => void
}

const CACHE_KIB = 65_536
/** The log is cut back to this once it has been larger. */
const WAL_LIMIT = 67_108_864

/**
 * Opens a file in WAL mode. Throws `SQLITE_BUSY` if another process is just changing its mode: try again. What may only be read is
 * opened for reading: every write then fails with SQLite's `SQLITE_READONLY`.
 */
export function openSqlite(file: string, options: OpenSqliteOptions): SqliteDatabase {
  const { driver, open } = chooseDriver(options)
  let db: SqliteDatabase | undefined
  try {
    createPrivately(file)
    db = open(file)
    db.pragma(`busy_timeout = ${options.busyMs}`)
    if (db.pragma('journal_mode') !== 'wal') db.pragma('journal_mode = wal')
    db.pragma(`synchronous = ${options.synchronous}`)
    db.pragma(`cache_size = -${options.cacheKib ?? CACHE_KIB}`)
    db.pragma(`journal_size_limit = ${WAL_LIMIT}`)
    return db
  } catch (error) {
    db?.close()
    if (isBusy(error)) throw error
    if (!cannotKeepLog(error) || !isReadableLog(file)) throw new SqliteOpenError(file, error)
    return openUnchanging(file, driver, error)
  }
}

/** Whether it is a database in WAL mode that this process may read. */
function isReadableLog(file: string): boolean {
  try {
    const { isSqlite, isWal } = readHeader(file)
    return isSqlite && isWal
  } catch {
    return false
  }
}

/**
 * Makes the file, and its directory where there is none. A new file is readable by its owner only: it holds inputs and results. SQLite gives the files beside it the same
 * permissions. A file that is there keeps those that it has.
 */
function createPrivately(file: string): void {
  if (file === ':memory:' || file === '') return
  try {
    mkdirSync(dirname(file), { recursive: true })
    closeSync(openSync(file, 'ax', 0o600))
  } catch {
    // It is there already, or cannot be made: the library says what is wrong.
  }
}

/** The user's own connection, whichever library it is of. Undefined: it is none. */
export function overSqlite(connection: unknown): SqliteDatabase | undefined {
  if (isBetterSqlite3(connection)) return overBetterSqlite3(connection)
  return isNodeSqlite(connection) ? overNodeSqlite(connection) : undefined
}

interface Driver {
  readonly driver: SqliteDatabase['driver']
  readonly open: (file: string) => SqliteDatabase
}

function chooseDriver({ driver, busyMs, onStatement }: OpenSqliteOptions): Driver {
  const reasons: string[] = []
  let cause: unknown
  if (driver !== 'node:sqlite') {
    try {
      loadBetterSqlite3()
      const verbose = onStatement && { verbose: (sql?: unknown) => onStatement(String(sql)) }
      return { driver: 'better-sqlite3', open: (file) => openBetterSqlite3(file, { timeout: busyMs, ...verbose }) }
    } catch (error) {
      cause = error
      reasons.push(`better-sqlite3 does not load (${firstLine(error)})`)
    }
  }
  if (driver !== 'better-sqlite3') {
    try {
      loadNodeSqlite()
      return { driver: 'node:sqlite', open: openNodeSqlite }
    } catch (error) {
      cause ??= error
      reasons.push(`Node ${process.version} has no node:sqlite`)
    }
  }
  throw new SqliteMissingError(reasons, cause)
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split('\n', 1)[0]!
}
