import { MillraceError } from '../../core/error.js'
import { peek } from '../../core/text/safe-read.js'
import type { Ms } from '../../core/time/time.js'

const BUSY = 5
const LOCKED = 6
const READONLY = 8

/** Another connection holds the lock that was needed; nothing has been written. */
export function isBusy(error: unknown): boolean {
  return isOf(error, /^SQLITE_(?:BUSY|LOCKED)/, [BUSY, LOCKED])
}

/** The file, or its directory, may only be read. */
export function isReadOnly(error: unknown): boolean {
  return isOf(error, /^SQLITE_READONLY/, [READONLY])
}

function isOf(error: unknown, codes: RegExp, numbers: readonly number[]): boolean {
  const code = peek(error, 'code')
  if (typeof code === 'string' && codes.test(code)) return true
  // node:sqlite gives the number; the low byte is the primary code.
  const number = peek(error, 'errcode')
  return typeof number === 'number' && numbers.includes(number & 0xff)
}

/** Neither library that opens SQLite files can be used here. */
export class SqliteMissingError extends MillraceError {
  constructor(reasons: readonly string[], cause: unknown) {
    super(
      'DRIVER_MISSING',
      `SQLite cannot be opened: ${reasons.join('; ')}. Install the driver with "npm install better-sqlite3@12", ` +
        'or run on Node 22.13 or newer, which includes one.',
      { cause },
    )
  }
}

/** The file cannot be opened, or is no database. */
export class SqliteOpenError extends MillraceError {
  constructor(file: string, cause: unknown, next = 'Its directory has to exist and be writable.') {
    const why = cause instanceof Error ? cause.message : String(cause)
    super('SQLITE_OPEN', `The SQLite file "${file}" cannot be opened: ${why}. ${next}`, { cause, facts: { file } })
  }
}

/** The file can be looked at and not changed: neither can work be added, nor can a worker run it. */
export class SqliteReadOnlyError extends MillraceError {
  constructor(file: string, cause: unknown) {
    super(
      'SQLITE_READ_ONLY',
      `This process may only read "${file}": it can look at work, and neither add nor run it. Give the user of this process the ` +
        'right to write the file and its directory, or run it as the user that owns them.',
      { cause, facts: { file } },
    )
  }
}

/** Another connection kept the write lock for longer than a call waits. Nothing of the call has been written. */
export class SqliteBusyError extends MillraceError {
  constructor(file: string, afterMs: Ms, cause: unknown) {
    super(
      'SQLITE_BUSY',
      `Another process has held the write lock of "${file}" for ${Math.round(afterMs)} ms, so nothing was written. Look for a ` +
        'program that keeps a transaction open, or a file on a network file system, where locks do not work.',
      { cause, facts: { file, afterMs } },
    )
  }
}

export class SqliteClosedError extends MillraceError {
  constructor(file: string) {
    super('BACKEND_CLOSED', `The SQLite file "${file}" has been closed: open another backend on it.`, {
      facts: { file },
    })
  }
}
