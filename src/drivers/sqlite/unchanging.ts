import { readFileSync, type Stats, statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { peek, peekString } from '../../core/text/safe-read.js'
import { openBetterSqlite3 } from './better-sqlite3.js'
import type { SqliteDatabase } from './database.js'
import { isReadOnly, SqliteOpenError } from './errors.js'
import { openNodeSqlite } from './node-sqlite.js'

/** A copy in memory is for looking at a file, not for carrying it around. */
const MOST_BYTES = 1024 * 1024 * 1024
/** Header bytes that say how the file is written and read: 2 is a write-ahead log, 1 none. */
const FORMAT_BYTES = [18, 19] as const
const NO_LOG = 1
const CANTOPEN = 14

/** SQLite keeps an index of its log beside the file, even to read it, and could not. */
export function cannotKeepLog(error: unknown): boolean {
  if (isReadOnly(error)) return true
  const number = peek(error, 'errcode')
  return (
    peekString(error, 'code')?.startsWith('SQLITE_CANTOPEN') === true ||
    (typeof number === 'number' && (number & 0xff) === CANTOPEN)
  )
}

/**
 * Opens a file in a place that may not be written, as it is at this moment and for reading only. That is sound only where no
 * process has it open and no log is beside it; otherwise the log holds changes that would be missed, and this throws.
 */
export function openUnchanging(file: string, driver: SqliteDatabase['driver'], cause: unknown): SqliteDatabase {
  const before = statSync(file)
  refuseLog(file, cause)
  if (driver === 'node:sqlite') return openNodeSqlite(`${pathToFileURL(file).href}?immutable=1`)
  if (before.size > MOST_BYTES)
    throw new SqliteOpenError(file, cause, `It is larger than 1 GiB, so it is not read into memory: ${COPY}`)
  const bytes = readFileSync(file)
  refuseLog(file, cause)
  if (hasChanged(before, statSync(file)))
    throw new SqliteOpenError(file, cause, 'Another process changed it while it was read. Try again.')
  // A database in memory has no log.
  for (const at of FORMAT_BYTES) bytes[at] = NO_LOG
  return openBetterSqlite3(bytes, { timeout: 0, readonly: true })
}

const COPY = 'copy it into a directory that this user may write, and open the copy.'

function refuseLog(file: string, cause: unknown): void {
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false })
  if (log === undefined || log.size === 0) return
  throw new SqliteOpenError(
    file,
    cause,
    `Its log "${file}-wal" holds changes, which cannot be read where nothing may be written. Read it as a user who may write ` +
      `the directory; or, if no process has it open, copy both files into a directory of yours, and open the copy.`,
  )
}

function hasChanged(before: Stats, after: Stats): boolean {
  return before.size !== after.size || before.mtimeMs !== after.mtimeMs || before.ino !== after.ino
}
