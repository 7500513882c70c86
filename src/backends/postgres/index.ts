/** Work in the PostgreSQL database that a team already runs, enqueued in its own transactions. */
export {
  type DrizzleTransaction,
  type KyselyTransaction,
  type PgTransaction,
  type PostgresJsTransaction,
  type PrismaTransaction,
  SchemaVersionError,
  type UserTransaction,
} from '../../drivers/postgres/index.js'
export { WrongModeError } from '../../ports/mode.js'
export { type PostgresBackend, postgresBackend } from './backend.js'
export type { PostgresBackendOptions } from './options.js'
export type { PostgresPubSub } from './ports/pubsub.js'
export type { PostgresQueue } from './ports/queue.js'
export type { PostgresStore } from './ports/store.js'
