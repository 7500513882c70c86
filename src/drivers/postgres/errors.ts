import { MillraceError, type WithCause } from '../../core/error.js'
import { errorMessage } from '../../core/text/error-text.js'
import { isInstance, peek, peekString } from '../../core/text/safe-read.js'
import { hidePasswords } from '../../core/text/secrets.js'

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

/** A lock was not to be had in time; nothing of the statement happened. */
export function isLocked(error: unknown): boolean {
  return sqlStateOf(error) === '55P03'
}

/**
 * A pooler gave the statement to a connection that does not know it, or that knows another under its name. Nothing
 * was run.
 */
export function isPoolerError(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '26000' || state === '42P05'
}

/** The optional driver is not there. */
export class PgMissingError extends MillraceError {
  constructor(options: WithCause) {
    super(
      'DRIVER_MISSING',
      'The Postgres backend needs the package "pg", which cannot be loaded. Install it: npm install pg',
      options,
    )
  }
}

/** A pool or connection was used after it was closed. */
export class PostgresClosedError extends MillraceError {
  constructor(cause?: unknown) {
    super(
      'CLOSED',
      'This Postgres backend, or its pool, has been closed. Make a new one, or close it after everything that uses it.',
      cause === undefined ? {} : { cause },
    )
  }
}

/** There is no connection, and none could be made. Nothing was sent. */
export class PostgresUnreachableError extends MillraceError {
  constructor(cause: unknown) {
    super(
      'POSTGRES_UNREACHABLE',
      `There is no connection to PostgreSQL; nothing was sent. Look at the address, the user and the server, and whether all ` +
        `connections of a pool of yours are in use. The reason: ${reasonOf(cause)}`,
      { cause },
    )
  }
}

/** The connection was lost between a statement and its answer. What was sent may have been done. */
export class PostgresReplyLostError extends MillraceError {
  constructor(what: string, cause: unknown) {
    super(
      'OUTCOME_UNKNOWN',
      `The connection to PostgreSQL was lost before ${what} was answered, so it is unknown whether it was done. A settlement, an ` +
        'enqueue under the same id, or a push with a dedupe key can be repeated; increment, or a push without one, would count ' +
        `twice. The reason: ${reasonOf(cause)}`,
      { cause, facts: { what } },
    )
  }
}

/** Where a host has several addresses, the error of all of them has a code and no message. */
function reasonOf(cause: unknown): string {
  const message = errorMessage(cause)
  return message === '' ? (peekString(cause, 'code') ?? 'none was given') : hidePasswords(message)
}

/** A mistake in the program, or an error that has its code: neither says anything about the connection. */
export function isOfProgram(error: unknown): boolean {
  return [MillraceError, TypeError, RangeError, SyntaxError].some((type) => isInstance(error, type))
}

/** The pool was ended, by its owner or by a close. */
export function isPoolEnded(error: unknown): boolean {
  return errorMessage(error).startsWith('Cannot use a pool after calling end')
}

/** The connection had broken before the statement: nothing was sent. */
export function isNotSent(error: unknown): boolean {
  return errorMessage(error).endsWith('and is not queryable')
}

/** No answer came, or the server said that it ends the connection. */
export function isReplyLost(error: unknown): boolean {
  if (isOfProgram(error)) return false
  return peekString(error, 'severity') === undefined || /^(08|57P0)/.test(sqlStateOf(error) ?? '')
}

/** Notifications do not arrive: a pooler in transaction mode, most likely. */
export class ListenUnavailableError extends MillraceError {
  constructor(waitedMs: number) {
    super(
      'LISTEN_UNAVAILABLE',
      `LISTEN was accepted, but a notification sent to ourselves did not come back within ${waitedMs} ms: a pooler in ` +
        'transaction mode carries none. Work is found by polling instead. Give `listenConnectionString`, an address ' +
        'that leads to the server itself, to be notified of work immediately.',
      { facts: { waitedMs } },
    )
  }
}
