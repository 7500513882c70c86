import { createHash } from 'node:crypto'
import { MillraceError } from '../../../core/error.js'
import { callable, clock, flag, integer, readOptions, unchecked } from '../../../core/read-options.js'
import { type Clock, systemClock } from '../../../core/time/clock.js'
import {
  addressOption,
  checkIdentifier,
  migrate,
  type PgPoolLike,
  PostgresDriver,
  quoteIdentifier,
} from '../../../drivers/postgres/index.js'
import type { BackendReads, BackendTx, Outbox, StacksBackend, Writers } from '../backend.js'
import type { BookRef, IndexFields } from '../documents/names.js'
import { PostgresCatalogue } from './catalogue.js'
import { Expressions } from './expression.js'
import { stacksMigrations } from './migrations.js'
import { openTransaction } from './open-transaction.js'
import { postgresOutbox, postgresWriters } from './outbox.js'
import { type PostgresParts, PostgresReads } from './reads.js'
import { Slots } from './slots.js'
import { PostgresTx } from './tx.js'

/** Options of `postgresStacks`: a connection string or a pool of yours. */
export interface PostgresStacksOptions {
  readonly connectionString?: string
  /** Your own pool of `pg`. It is never closed here. */
  readonly pool?: PgPoolLike
  /** Where to listen, if the connection string leads to a pooler. */
  readonly listenConnectionString?: string
  /** The schema that holds the tables. Default: `millrace`. */
  readonly schema?: string
  /** Connections at most; all but two may be in transactions at the same time. Default 10. */
  readonly maxConnections?: number
  /** False: the tables have to be there. Default true. */
  readonly migrate?: boolean
  /** Called with errors that reject no call: a listening connection that broke. Default: ignored, because polling is the fallback. */
  readonly onError?: (error: unknown) => void
  readonly clock?: Clock
}

/** How long a transaction waits for a connection, and for a watcher that is being registered. */
const TIMEOUT_MS = 30_000

/**
 * How long it waits for a document that another one has written. A transaction that waits nearly always loses, because the document is then
 * not the one of its snapshot; and of two that wait for each other one has to give way. So it is refused soon and starts again.
 */
const LOCK_MS = 150

/**
 * Documents in PostgreSQL, for a fleet: one table for each book with a `jsonb` column, and indexes on the fields that were
 * declared. Writers of different documents do not wait for each other; transactions see one snapshot, and of two that write
 * the same document the slower one is refused with `RetryableTransactionError`.
 */
export function postgresStacks(given: PostgresStacksOptions): StacksBackend {
  const options = readOptions('postgresStacks', given, {
    connectionString: unchecked,
    pool: unchecked,
    listenConnectionString: unchecked,
    schema: (path: string, schema: unknown = 'millrace') => checkIdentifier(path, schema as string),
    maxConnections: integer({ min: 3, default: 10 }),
    migrate: flag(true),
    onError: callable<(error: unknown) => void>(() => undefined),
    clock: clock(systemClock),
  })
  if (options.connectionString === undefined && options.pool === undefined)
    throw new MillraceError('BAD_OPTION', 'postgresStacks needs a connectionString or a pool of pg.')
  const { clock: time, maxConnections, schema, onError } = options
  const driver = new PostgresDriver({
    connectionString: addressOption('postgresStacks.connectionString', options.connectionString),
    pool: options.pool,
    listenConnectionString: addressOption('postgresStacks.listenConnectionString', options.listenConnectionString),
    maxConnections,
    // Queries come in as many shapes as programs ask, and plans kept for all values suit none.
    prepare: false,
    clock: time,
    onError,
  })
  return new PostgresBackend({
    driver,
    schema,
    mayMigrate: options.migrate,
    slots: new Slots(time, maxConnections - 2, TIMEOUT_MS),
    clock: time,
  })
}

interface Resolved {
  readonly driver: PostgresDriver
  readonly schema: string
  readonly mayMigrate: boolean
  readonly slots: Slots
  readonly clock: Clock
}

class PostgresBackend implements StacksBackend {
  readonly name = 'postgres'
  readonly isExclusive = false
  readonly reads: BackendReads
  readonly outbox: Outbox
  readonly writers: Writers
  readonly #options: Resolved
  readonly #parts: PostgresParts
  /** The quoted name of the schema. */
  readonly #schema: string
  readonly #channel: string

  constructor(options: Resolved) {
    const { driver, schema, clock } = options
    this.#options = options
    this.#schema = quoteIdentifier(schema)
    // A channel's name is short, a schema's may not be.
    this.#channel = `millrace_stacks_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
    const expressions = new Expressions(schema)
    this.#parts = { expressions, catalogue: new PostgresCatalogue(schema, expressions) }
    this.reads = new PostgresReads(driver, this.#parts)
    this.outbox = postgresOutbox({ driver, schema: this.#schema, channel: this.#channel, clock })
    this.writers = postgresWriters(driver, this.#schema)
  }

  async open(): Promise<void> {
    const { driver, schema, mayMigrate } = this.#options
    await migrate({ driver, schema, part: 'stacks', migrations: stacksMigrations, mayMigrate })
  }

  close(): Promise<void> {
    return this.#options.driver.close()
  }

  async ensureBook(ref: BookRef, indexes: readonly IndexFields[]): Promise<void> {
    const { driver } = this.#options
    const { catalogue } = this.#parts
    // Most starts find everything in place, and need no lock.
    if (await catalogue.has(driver, ref, indexes)) return
    await driver.transaction((tx) => catalogue.make(tx, ref, indexes))
  }

  async begin({ readOnly }: { readonly readOnly: boolean }): Promise<BackendTx> {
    const { driver, slots } = this.#options
    const release = await slots.take()
    // LOCK takes no snapshot, so a transaction that had to wait for a registration sees it.
    const setup = readOnly
      ? 'set transaction isolation level repeatable read, read only'
      : `set transaction isolation level repeatable read; set local lock_timeout = ${TIMEOUT_MS};
         lock table ${this.#schema}.stacks_watcher in row share mode; set local lock_timeout = ${LOCK_MS}`
    try {
      const tx = await openTransaction(driver, setup)
      return new PostgresTx(tx, { ...this.#parts, schema: this.#schema, channel: this.#channel, release })
    } catch (error) {
      release()
      throw error
    }
  }
}
