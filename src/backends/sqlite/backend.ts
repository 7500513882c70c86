import { resolve } from 'node:path'
import { newToken } from '../../core/ids.js'
import {
  booleanOption,
  functionOption,
  integerOption,
  OptionError,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import { isWellFormed } from '../../core/text/well-formed.js'
import { type Clock, clockFrom, isClock, type Random, systemClock } from '../../core/time/clock.js'
import type { At } from '../../core/time/time.js'
import { SqliteConnection } from '../../drivers/sqlite/connection.js'
import { ownPorts } from '../../ports/find-ledger.js'
import type { Backend, BackendLocation, PubSub, Queue } from '../../ports/ports.js'
import { BeforeClose } from '../shared/before-close.js'
import { withHidden } from '../shared/hidden.js'
import { ModeMark, type SqliteContext } from './context.js'
import { enlistOn } from './enlist.js'
import { Leases } from './lease.js'
import { leaseClockOf } from './lease-clock.js'
import { sqliteLedger } from './ledger.js'
import { Notifier } from './notify.js'
import { pubsubPort } from './ports/pubsub.js'
import { queuePort, type SqliteQueue } from './ports/queue.js'
import { type SqliteStore, storePort } from './ports/store.js'
import { type Removed, Sweeper } from './retention.js'
import { schemaOf } from './schema.js'
import { prepareStatements, type Statements } from './sql.js'
import { prefixOption, tablesOf } from './tables.js'

/** Options of `sqliteBackend`. */
export interface SqliteBackendOptions {
  /**
   * The database file. Where there is none, it is created with mode 0600, and its directory with it. Not on a network file
   * system: locks fail there.
   */
  readonly file: string
  /**
   * `normal`: a power cut may take the last transactions, a crash of the process takes nothing. `full`: every accepted item
   * is on disk, at the price of one flush for each transaction. Default: `normal`.
   */
  readonly synchronous?: 'normal' | 'full'
  /** Every table begins with it, so that several systems share a file. Default: `millrace_`. */
  readonly prefix?: string
  /** False: the tables have to be there already, and are not changed. Default: true. */
  readonly migrate?: boolean
  /**
   * Epoch ms. Default: `Date.now`. All processes on one file must agree on it, as those of one machine do. Leases are kept in the
   * machine's monotonic time; with a function of your own they follow that function.
   */
  readonly now?: (() => At) | Clock
  /** A clock instead of `now`. One whose timers are not real (no `isReal`) is also the clock of leases, by `monotonic`. */
  readonly clock?: Clock
  /** Spreads the tries of processes that wait for each other. Default: `Math.random`. */
  readonly random?: Random
  /** Largest item, result or group value, in bytes. Default: 1 MiB. */
  readonly maxItemBytes?: number
  /** Which library opens the file. Default: better-sqlite3 where it loads, else Node's own `node:sqlite`. */
  readonly driver?: 'better-sqlite3' | 'node:sqlite'
  /** Called with every statement, for tests that count them. Slow, and only with better-sqlite3. */
  readonly onStatement?: (sql: string) => void
}

/** Three ports on one file, made together, and a native ledger behind them. */
export interface SqliteBackend extends Backend {
  readonly queue: SqliteQueue
  readonly store: SqliteStore
  named(queue: string): SqliteQueue
  /** Opens the file and makes or migrates its tables now, instead of with the first call: before a transaction of yours needs them. */
  migrate(): Promise<void>
  /** How much this process has removed because its time was over. */
  removed(): Removed
  /** Writes what was handed in before, enqueues included, then lets go of the file. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const OPTIONS = [
  'file',
  'synchronous',
  'prefix',
  'migrate',
  'now',
  'clock',
  'random',
  'maxItemBytes',
  'driver',
  'onStatement',
] as const

/**
 * Everything in one SQLite file: for one machine and any number of processes on it. Returns immediately; the file is opened and
 * its tables are made with the first call.
 *
 * @example
 * ```ts
 * const backend = sqliteBackend({ file: './work.db' })
 * const work = createWork({ backend, work: [sendInvoice] as const })
 * ```
 */
export function sqliteBackend(options: SqliteBackendOptions): SqliteBackend {
  const given = optionsObject('sqliteBackend', options, OPTIONS)
  const file = fileOption(given.file)
  const time = timeOption(given)
  const clock = clockFrom(time)
  const prefix = prefixOption('sqliteBackend.prefix', given.prefix)
  const maxItemBytes = integerOption('sqliteBackend.maxItemBytes', given.maxItemBytes, {
    min: 1_024,
    default: 1_048_576,
  })
  const driver =
    given.driver === undefined
      ? undefined
      : oneOfOption('sqliteBackend.driver', given.driver, ['better-sqlite3', 'node:sqlite'])
  const tables = tablesOf(prefix)
  const connection = new SqliteConnection<Statements>({
    file,
    clock,
    random: functionOption('sqliteBackend.random', given.random, Math.random),
    synchronous: oneOfOption('sqliteBackend.synchronous', given.synchronous, ['normal', 'full'], 'normal'),
    migrate: booleanOption('sqliteBackend.migrate', given.migrate, true),
    schema: schemaOf(tables, prefix),
    statements: (db) => prepareStatements(db, tables),
    ...(driver && { driver }),
    ...(given.onStatement && { onStatement: given.onStatement }),
  })
  const notifier = new Notifier(connection, newToken())
  const sweeper = new Sweeper()
  const leases = new Leases(() => leaseClockOf(time))
  const context: SqliteContext = { connection, notifier, sweeper, maxItemBytes, mode: new ModeMark(file), leases }

  const ports = new Map<string, SqliteQueue>()
  const queues = new Map<Queue, string>()
  const named = (name: string): SqliteQueue => {
    checkName(name)
    const known = ports.get(name)
    if (known !== undefined) return known
    const port = queuePort(context, name)
    ports.set(name, port)
    queues.set(port, name)
    return port
  }
  const queue = named('default')
  const store = storePort(context)
  const pubsub: PubSub = pubsubPort(context)
  const enlist = enlistOn({ file, tables, clock, leases, notifier, maxItemBytes })
  const beforeClose = new BeforeClose()
  ownPorts({ queues, pubsub, store, open: () => sqliteLedger(context, enlist), beforeClose: beforeClose.add })
  let closing: Promise<void> | undefined
  const end = async (): Promise<void> => {
    await beforeClose.settled()
    notifier.close()
    await connection.close()
  }
  const close = (): Promise<void> => {
    closing ??= end()
    return closing
  }
  const migrate = (): Promise<void> => connection.read(() => undefined)
  return withHidden(
    { queue, pubsub, store },
    {
      named,
      migrate,
      close,
      location: (): BackendLocation => ({ kind: 'sqlite', file }),
      removed: () => sweeper.removed,
      [Symbol.asyncDispose]: close,
    },
  )
}

function fileOption(file: unknown): string {
  const path = stringOption('sqliteBackend.file', file)
  if (path.includes('\0') || !isWellFormed(path))
    throw new OptionTypeError('sqliteBackend.file', 'a path of the file system', path)
  // Each process, and the watch beside the connection, has to mean the same file: ":memory:" would be another for each.
  if (path === ':memory:' || path.startsWith('file:'))
    throw new OptionTypeError('sqliteBackend.file', 'the path of a file (memoryBackend() needs none)', path)
  return resolve(path)
}

function timeOption({ now, clock }: SqliteBackendOptions): (() => At) | Clock {
  if (now !== undefined && clock !== undefined)
    throw new OptionError('sqliteBackend.now', 'left out when `clock` is given, because both say what time it is', now)
  const from = clock !== undefined ? clock : now !== undefined ? now : systemClock
  if (typeof from !== 'function' && !isClock(from))
    throw new OptionTypeError(`sqliteBackend.${clock === undefined ? 'now' : 'clock'}`, 'a function or a Clock', from)
  return from
}

function checkName(name: unknown): void {
  if (typeof name !== 'string' || name === '' || !isWellFormed(name))
    throw new OptionTypeError('named(queue)', 'a non-empty string without half surrogate pairs', name)
}
