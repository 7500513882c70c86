/** The document store of the guild: books, queries, transactions and change capture, on memory, SQLite or PostgreSQL. */
import type { Apparatus } from '../host/plugin.js'
import { createStacks } from './apparatus.js'

export type {
  Book,
  PatchOf,
  ReadOnlyBook,
  Rev,
  Stacks,
  StacksApi,
  StacksOptions,
  StacksWarning,
  TransactionContext,
  TransactionOptions,
  WatcherReport,
} from './api.js'
export { createStacks, type StacksApparatusOptions, type StacksConfig } from './apparatus.js'
export type {
  BackendReads,
  BackendTx,
  CursorMove,
  Outbox,
  OutboxEntry,
  StacksBackend,
  Stored,
  WatcherState,
  Writers,
} from './backend.js'
export type { BookRef, BookSchema, FieldPath, IndexFields } from './documents/names.js'
export { type BookEntry, type Doc, type Json, storableText } from './documents/value.js'
export {
  CascadeDepthError,
  DeadEventNotFoundError,
  DetachedDeadlockError,
  DocumentNotFoundError,
  InsideTransactionError,
  NoHandlerError,
  ReadOnlyTransactionError,
  ReentryDepthError,
  RetryableTransactionError,
  StacksClosedError,
  StacksNameError,
  StacksQueryError,
  StacksValueError,
  StaleWriteError,
  TransactionClosedError,
  TransactionDoomedError,
  UnknownBookError,
  WatchClosedError,
  WatcherMismatchError,
  WatcherTakenError,
} from './errors.js'
export { type MemoryStacksOptions, memoryStacks } from './memory/backend.js'
export { MemorySpace } from './memory/space.js'
export type { OpenStacksOptions } from './open-options.js'
export { type PostgresStacksOptions, postgresStacks } from './postgres/backend.js'
export { NoConnectionError } from './postgres/slots.js'
export type { Filter, InternalQuery, SortKey, Test } from './query/filter.js'
export type { BookQuery, Clause, Condition, ListOptions, Order, Scalar, Where } from './query/query.js'
export { type SqliteStacksOptions, sqliteStacks } from './sqlite/backend.js'
export { openStacks } from './stacks.js'
export type { DeadEvent, DeadEventListing } from './watch/dead-events.js'
export type { ChangeEvent, ChangeHandler, CreateEvent, DeleteEvent, UpdateEvent, WatchOptions } from './watch/events.js'

/** The plugin. The host reads `apparatus` once for each guild, so every guild has its own store. */
const stacks: { readonly apparatus: Apparatus } = {
  get apparatus() {
    return createStacks()
  },
}

// biome-ignore lint/style/noDefaultExport: a plugin is the default export of its package.
export default stacks
