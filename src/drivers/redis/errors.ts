import { MillraceError } from '../../core/error.js'
import { errorMessage } from '../../core/text/error-text.js'
import { peekString } from '../../core/text/safe-read.js'
import type { Ms } from '../../core/time/time.js'

/** The server did not answer in time. What was sent may have been done. */
export class RedisTimeoutError extends MillraceError {
  constructor(what: string, afterMs: Ms) {
    super(
      'REDIS_TIMEOUT',
      `Redis did not answer ${what} within ${afterMs} ms, so the connection is made anew. What was sent may have been done: ` +
        'a settlement or a push with a dedupe key can be repeated; increment, or a push without one, would count twice. Look at the server, or raise commandTimeoutMs.',
      { facts: { what, afterMs } },
    )
  }
}

/** The connection was lost between a call and its answer. What was sent may have been done. */
export class RedisReplyLostError extends MillraceError {
  constructor(what: string, cause: unknown) {
    super(
      'OUTCOME_UNKNOWN',
      `The connection to Redis was lost before ${what} was answered, so it is unknown whether it was done. A settlement, an enqueue ` +
        'under the same id, or a push with a dedupe key can be repeated; increment, or a push without one, would count twice.',
      { cause, facts: { what } },
    )
  }
}

/** There is no connection, and none could be made in time. Nothing was sent. */
export class RedisUnreachableError extends MillraceError {
  constructor(afterMs: Ms, cause: unknown) {
    super(
      'REDIS_UNREACHABLE',
      `There is no connection to Redis after ${afterMs} ms; nothing was sent. Look at the address and the server.`,
      { cause, facts: { afterMs } },
    )
  }
}

/** A connection was lost. Another one is being made. */
export class RedisDisconnectedError extends MillraceError {
  constructor() {
    super('REDIS_DISCONNECTED', 'The connection to Redis was lost; another one is being made. Nothing has to be done.')
  }
}

/** The backend was closed. */
export class RedisClosedError extends MillraceError {
  constructor() {
    super('REDIS_CLOSED', 'The Redis backend was closed: open another one, or close it later.')
  }
}

/** The server has no room, and says so: nothing was stored. */
export class RedisFullError extends MillraceError {
  constructor(cause: unknown) {
    super(
      'REDIS_FULL',
      'Redis has reached its maxmemory and stores nothing more: this was not accepted. Raise maxmemory, or shorten retention.',
      { cause },
    )
  }
}

/** A client that was given may do twice what it was asked once. */
export class RedisSendsTwiceWarning extends MillraceError {
  constructor() {
    super(
      'REDIS_SENDS_TWICE',
      'The client that was given sends again what was not answered, though it may have been done: work could be claimed, counted or ' +
        'pushed twice. Make it with autoResendUnfulfilledCommands: false (a Cluster: retryDelayOnFailover: 0).',
    )
  }
}

/** The answer is lost with the line: the driver rejects what was sent and not answered when it may not send it again. */
export function isReplyLost(error: unknown): boolean {
  return peekString(error, 'name') === 'MaxRetriesPerRequestError' || errorMessage(error) === 'Connection is closed.'
}

/** The line was being cut, or no node was known: nothing was sent. */
export function isNotSent(error: unknown): boolean {
  return (
    errorMessage(error).startsWith("Stream isn't writeable") || peekString(error, 'name') === 'ClusterAllFailedError'
  )
}
