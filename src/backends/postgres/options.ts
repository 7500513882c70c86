import {
  booleanOption,
  functionOption,
  integerOption,
  OptionError,
  OptionTypeError,
  optionsObject,
} from '../../core/options.js'
import { warnOnce } from '../../core/process/warn-once.js'
import { type Clock, clockFrom, isClock, systemClock } from '../../core/time/clock.js'
import type { At } from '../../core/time/time.js'
import { addressOption, checkIdentifier, type PgPoolLike } from '../../drivers/postgres/index.js'

/** Options of `postgresBackend`: `connectionString` or `pool`, and what may differ from the defaults. */
export interface PostgresBackendOptions {
  /** Where the server is: `postgres://user@host/database`. Connections are made when they are first needed. */
  readonly connectionString?: string
  /** Your own pool of `pg` instead. It is never closed by the backend. Two connections are made beside it: one to
   *  listen on, and now and then, for a second or so, one on which schemas and names are looked up, and workers
   *  are told of transactions of yours that have committed. */
  readonly pool?: PgPoolLike
  /** The schema that holds everything of this system; two systems on one database take two. Default: `millrace`. */
  readonly schema?: string
  /** Where to LISTEN, if the other address leads to a pooler in transaction mode. Default: the same address. */
  readonly listenConnectionString?: string
  /** Most connections, where the pool is ours. Default: 10. */
  readonly maxConnections?: number
  /** Let the server keep plans under names. Default: true; it turns itself off when a pooler has lost one. */
  readonly prepare?: boolean
  /** Create and migrate the schema when it is first used. Default: true. With false, a schema that is too old is an error. */
  readonly migrate?: boolean
  /** Largest item, result or group value, in bytes. Default: 1 MiB. */
  readonly maxItemBytes?: number
  /** Called with errors that no call can return: a listening connection was lost, notifications do not arrive. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void
  /** The time instead of the server's, for tests. A whole clock is accepted too. */
  readonly now?: (() => At) | Clock
  /** A clock instead of `now`, for tests: its time replaces the server's, its timers pace reconnecting. */
  readonly clock?: Clock
}

export interface ResolvedOptions {
  readonly connectionString: string | undefined
  readonly pool: PgPoolLike | undefined
  readonly listenConnectionString: string | undefined
  readonly schema: string
  readonly maxConnections: number
  readonly prepare: boolean
  readonly migrate: boolean
  readonly maxItemBytes: number
  readonly onError: (error: unknown) => void
  /** Null: the server's time decides. */
  readonly now: () => At | null
  readonly clock: Clock
}

const NAMES = [
  'connectionString',
  'pool',
  'schema',
  'listenConnectionString',
  'maxConnections',
  'prepare',
  'migrate',
  'maxItemBytes',
  'onError',
  'now',
  'clock',
] as const

/** Fills in defaults and checks how options relate, so that the inside sees no surprises. */
export function resolveOptions(options: PostgresBackendOptions): ResolvedOptions {
  const owner = 'postgresBackend'
  const given = optionsObject(owner, options, NAMES)
  const { pool, connectionString } = given
  if ((pool === undefined) === (connectionString === undefined)) {
    throw new OptionError(`${owner}.connectionString`, 'given, or else `pool`, and not both', connectionString)
  }
  if (pool !== undefined && typeof (pool as { connect?: unknown } | null)?.connect !== 'function') {
    throw new OptionTypeError(`${owner}.pool`, 'a Pool of pg', pool)
  }
  if (given.now !== undefined && given.clock !== undefined) {
    throw new OptionError(`${owner}.now`, 'left out when `clock` is given, because both say what time it is', given.now)
  }
  const time = given.clock !== undefined ? given.clock : given.now
  if (time !== undefined && typeof time !== 'function' && !isClock(time)) {
    throw new OptionTypeError(`${owner}.${given.clock === undefined ? 'now' : 'clock'}`, 'a function or a Clock', time)
  }
  const clock = time === undefined ? systemClock : clockFrom(time)
  return Object.freeze({
    connectionString: addressOption(`${owner}.connectionString`, connectionString),
    pool,
    listenConnectionString: addressOption(`${owner}.listenConnectionString`, given.listenConnectionString),
    schema: checkIdentifier(`${owner}.schema`, given.schema === undefined ? 'millrace' : given.schema),
    maxConnections: integerOption(`${owner}.maxConnections`, given.maxConnections, { min: 1, default: 10 }),
    prepare: booleanOption(`${owner}.prepare`, given.prepare, true),
    migrate: booleanOption(`${owner}.migrate`, given.migrate, true),
    maxItemBytes: integerOption(`${owner}.maxItemBytes`, given.maxItemBytes, { min: 1_024, default: 1_048_576 }),
    onError: functionOption<(error: unknown) => void>(`${owner}.onError`, given.onError, (error) =>
      warnOnce('MILLRACE_POSTGRES', error, `${owner}({ onError })`),
    ),
    now: time === undefined ? () => null : () => Math.floor(clock.now()),
    clock,
  })
}
