import { OptionTypeError } from '../../core/options.js'
import { PostgresDriver } from '../../drivers/postgres/index.js'
import { ownPorts } from '../../ports/find-ledger.js'
import type { Backend, BackendLocation, Queue } from '../../ports/ports.js'
import { BeforeClose } from '../shared/before-close.js'
import { withHidden } from '../shared/hidden.js'
import { Announcer } from './announcer.js'
import { Connection } from './connection.js'
import { postgresLedger } from './ledger.js'
import { Names } from './names.js'
import { Notifier } from './notify.js'
import { type PostgresBackendOptions, resolveOptions } from './options.js'
import { type PostgresPubSub, pubsubPort } from './ports/pubsub.js'
import { type PostgresQueue, queuePort } from './ports/queue.js'
import { type PostgresStore, storePort } from './ports/store.js'
import { checkText } from './storable.js'

const DEFAULT_QUEUE = 'default'
const LONGEST_NAME = 1_000

/** Three ports on one schema, made together, and a native ledger behind them. */
export interface PostgresBackend extends Backend {
  readonly queue: PostgresQueue
  readonly pubsub: PostgresPubSub
  readonly store: PostgresStore
  named(queue: string): PostgresQueue
  /** Creates or migrates the schema now, instead of when it is first used. */
  migrate(): Promise<void>
  /**
   * Waits for enqueues that were handed in before, at most 5 s or `stopDrain` of their system, then ends the connections that this
   * backend opened. A pool that was given stays open.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Everything in one schema of a PostgreSQL database: for fleets that have one already, and for enqueuing in the same
 * transaction as your own writes. It returns immediately and connects when it is first used; the schema is created and migrated
 * then, under a lock.
 *
 * The server's time decides what is due and which lease has ended, so that workers whose clocks differ cannot take each
 * other's items.
 *
 * @example
 * ```ts
 * const backend = postgresBackend({ connectionString: 'postgres://app@localhost/shop', schema: 'work' })
 * const work = createWork({ backend, work: [sendInvoice] as const })
 * ```
 */
export function postgresBackend(options: PostgresBackendOptions): PostgresBackend {
  const resolved = resolveOptions(options)
  const { schema, maxItemBytes } = resolved
  const driver = new PostgresDriver(resolved)
  const connection = new Connection(driver, schema, resolved.migrate, resolved.now)
  const names = new Names(connection)
  const notifier = new Notifier(driver, connection.channel)
  const announcer = new Announcer(connection)
  const ports = new Map<string, PostgresQueue>()
  const queuesByPort = new Map<Queue, string>()
  const named = (name: string): PostgresQueue => {
    if (typeof name !== 'string' || name === '') throw new OptionTypeError('named(queue)', 'a non-empty string', name)
    checkText('named', 'queue', name, LONGEST_NAME)
    let port = ports.get(name)
    if (port === undefined) {
      port = queuePort(connection, names, name, maxItemBytes)
      ports.set(name, port)
      queuesByPort.set(port, name)
    }
    return port
  }
  const queue = named(DEFAULT_QUEUE)
  const store = storePort(connection, maxItemBytes)
  const pubsub = pubsubPort(connection)
  const beforeClose = new BeforeClose()
  ownPorts({
    queues: queuesByPort,
    pubsub,
    store,
    open: () => postgresLedger(connection, names, notifier, announcer, maxItemBytes),
    beforeClose: beforeClose.add,
  })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= beforeClose
      .settled()
      .then(() => announcer.close())
      .then(() => driver.close())
    return closing
  }
  const migrate = async (): Promise<void> => {
    await connection.ready()
  }
  const { connectionString, listenConnectionString, pool } = resolved
  const location = (): BackendLocation => ({
    kind: 'postgres',
    schema,
    connectionString,
    listenConnectionString,
    pool,
  })
  return withHidden({ queue, pubsub, store }, { named, migrate, close, location, [Symbol.asyncDispose]: close })
}
