import type { Ms } from '../../core/time/time.js'
import type { WatcherState } from './backend.js'
import type { BookSchema } from './documents/names.js'
import type { BookEntry } from './documents/value.js'
import type { BookQuery, ListOptions, Where } from './query/query.js'
import type { DeadEvent, DeadEventListing } from './watch/dead-events.js'
import type { ChangeHandler, WatchOptions } from './watch/events.js'

/** A revision of a document: opaque, never used twice. */
export type Rev = string

/** What is read of a book. Everything returned is a private copy. */
export interface ReadOnlyBook<T extends BookEntry> {
  get(id: string): Promise<T | null>
  find(query: BookQuery): Promise<T[]>
  list(options?: ListOptions): Promise<T[]>
  count(where?: Where): Promise<number>
  /** The revision of a document, for `ifRev`; null when it is absent. */
  rev(id: string): Promise<Rev | null>
}

/** Fields to set; one given as `undefined` is removed. */
export type PatchOf<T extends BookEntry> = { readonly [K in keyof T]?: T[K] | undefined }

/** A book that can be written. */
export interface Book<T extends BookEntry> extends ReadOnlyBook<T> {
  /** Inserts or replaces the whole document. With `ifRev: null` it must be absent, with a revision it must have that one. */
  put(doc: T, options?: { readonly ifRev?: Rev | null }): Promise<void>
  /** Merges top-level fields and returns the whole document. Rejects when it is absent; an `id` in the fields is ignored. */
  patch(id: string, fields: PatchOf<T>, options?: { readonly ifRev?: Rev }): Promise<T>
  /** Removes the document. One that is absent is no error and no event. */
  delete(id: string, options?: { readonly ifRev?: Rev }): Promise<void>
}

/** Books inside a transaction. Ordinary handles work as well: the transaction travels with the calls. */
export interface TransactionContext {
  book<T extends BookEntry>(ownerId: string, name: string): Book<T>
  readBook<T extends BookEntry>(ownerId: string, name: string): ReadOnlyBook<T>
}

/** Options of a transaction of the document store. */
export interface TransactionOptions {
  /**
   * How often to run the function again when the database refused because another transaction was faster
   * (`RetryableTransactionError`). Default 50; 0 for a function that must not run twice.
   */
  readonly retries?: number
  /** One snapshot for several reads. It takes no lock, and a write rejects. Default false. */
  readonly readOnly?: boolean
}

/** The document store, as plugins see it. */
export interface StacksApi {
  book<T extends BookEntry>(ownerId: string, name: string): Book<T>
  /** A handle without `put`, `patch` and `delete`. */
  readBook<T extends BookEntry>(ownerId: string, name: string): ReadOnlyBook<T>
  /** Registers a watcher; possible until startup ends. */
  watch<T extends BookEntry>(ownerId: string, book: string, handler: ChangeHandler<T>, options?: WatchOptions): void
  /**
   * Runs `fn` in a transaction: all of what it and the phase-1 handlers wrote, or nothing. Inside another one it joins that.
   * Resolves with its value once phase 2 has run.
   */
  transaction<R>(fn: (tx: TransactionContext) => Promise<R>, options?: TransactionOptions): Promise<R>
  /**
   * Runs `fn` outside of the transaction that is going on. Where the store has one writer at a time, awaiting a detached
   * write inside a transaction rejects with `DetachedDeadlockError`.
   */
  detached<R>(fn: () => Promise<R>): Promise<R>
  /**
   * Calls back as soon as another process may have written to a book that a durable watcher watches. Calls may be late or
   * superfluous, and one may be missed, so poll now and then as well. The returned function ends it.
   */
  onChangeElsewhere(callback: () => void): () => void
  /** How many watchers of this process run inside the transactions that write to that book. */
  watched(ownerId: string, book: string): number
}

/** What went wrong after a commit, where no call was left to reject. */
export interface StacksWarning {
  readonly code: 'PHASE2_FAILED' | 'WATCHER_FAILED' | 'EVENT_DEAD_LETTERED' | 'DELIVERY_FAILED' | 'WATCHERS_DIFFER'
  readonly message: string
  readonly error: unknown
  readonly watcher?: string
}

/** A durable watcher, and what became of its events. */
export interface WatcherReport extends WatcherState {
  /** How many events it could not handle: `deadEvents()` lists them. */
  readonly dead: number
}

/** Options of `openStacks`, beside the backend. */
export interface StacksOptions {
  /** The directory of the guild, for backends that keep files. Default: the working directory. */
  readonly home?: string
  /** How long a process keeps a durable watcher without renewing, after a crash. Default 10 000. */
  readonly watcherLeaseMs?: Ms
  /** The largest document. Default 16 MiB. */
  readonly maxDocumentBytes?: number
  /** What to do when a process with other phase-1 watchers writes to the same store. Default `'refuse'`. */
  readonly differentWatchers?: 'refuse' | 'allow'
  /** Called with what failed after a commit: handlers of phase 2 and of durable watchers, and deliveries. Default: `process.emitWarning`. */
  readonly onWarning?: (warning: StacksWarning) => void
}

/** An open store. */
export interface Stacks extends StacksApi {
  /** Makes books and indexes where they are not there yet; never drops anything. */
  declare(ownerId: string, books: Readonly<Record<string, BookSchema>>): Promise<void>
  /** Ends the registration of watchers and begins to deliver to durable ones, unless `deliver` is false. */
  seal(options?: { readonly deliver?: boolean }): Promise<void>
  /** Begins to deliver to durable watchers, after `seal({ deliver: false })`. */
  deliver(): Promise<void>
  /**
   * Ends the delivery to durable watchers for good, when the handlers that run now have ended. The store stays open: their
   * events are kept for the next start, or for another process.
   */
  rest(): Promise<void>
  /** The durable watchers of the store, how far behind each is, and how many of its events are dead. */
  watchers(): Promise<WatcherReport[]>
  /** Forgets a durable watcher that no program has any more, with the events kept for it. */
  forgetWatcher(name: string): Promise<void>
  /** Events that durable watchers could not handle, in commit order. */
  deadEvents(listing?: DeadEventListing): Promise<DeadEvent[]>
  /**
   * Calls the handler of a dead event's watcher again, in this process, and forgets the event when it has been handled. Rejects
   * with what the handler throws; then the event stays.
   */
  redeliver(id: string): Promise<void>
  /** Waits for transactions and handlers on their way, then closes the backend. */
  close(): Promise<void>
}
