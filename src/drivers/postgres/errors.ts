import { MillraceError } from '../../core/error.js'
import { peek } from '../../core/safe-read.js'

/** The five letters of an SQLSTATE, where the server has spoken. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = peek(error, 'code')
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** The server ended one of several that were in each other's way, and nothing of this one happened: repeat it. */
export function isContention(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '40P01' || state === '40001'
}

/**
 * A pooler gave the statement to a connection that had not heard of it, or that knows another under its name. Nothing
 * was run.
 */
export function isPoolerError(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '26000' || state === '42P05'
}

/** The optional driver is not there. */
export class PgMissingError extends MillraceError {
  constructor(options: ErrorOptions) {
    super(
      'DRIVER_MISSING',
      'The Postgres backend needs the package "pg", which cannot be loaded. Install it: npm install pg',
      options,
    )
  }
}

/** A pool or connection was used after it was closed. */
export class PostgresClosedError extends MillraceError {
  constructor() {
    super('CLOSED', 'This Postgres backend has been closed. Make a new one, or close it after everything that uses it.')
  }
}

/** Notifications do not arrive: a pooler in transaction mode, most likely. */
export class ListenUnavailableError extends MillraceError {
  constructor(waitedMs: number) {
    super(
      'LISTEN_UNAVAILABLE',
      `LISTEN was accepted, but a notification sent to ourselves did not come back within ${waitedMs} ms: a pooler in ` +
        'transaction mode carries none. Work is found by polling instead. Give `listenConnectionString`, an address ' +
        'that leads to the server itself, to hear of work at once.',
      { facts: { waitedMs } },
    )
  }
}
