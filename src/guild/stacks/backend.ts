import type { Ms } from '../../core/time/time.js'
import type { BookRef, IndexFields } from './documents/names.js'
import type { Doc } from './documents/value.js'
import type { Filter, InternalQuery } from './query/filter.js'
import type { ChangeEvent } from './watch/events.js'

/** A document and the revision that lies beside it. A revision is never used twice. */
export interface Stored {
  readonly doc: Doc
  readonly rev: string
}

/** Reads. A book that was not declared is empty. What is returned belongs to the caller. */
export interface BackendReads {
  get(ref: BookRef, id: string): Promise<Stored | null>
  find(ref: BookRef, query: InternalQuery): Promise<Doc[]>
  count(ref: BookRef, filter: Filter): Promise<number>
}

/**
 * One transaction. The engine calls one operation at a time, and ends it by `commit` or `rollback`, once. It sees its own
 * writes; others see them only after `commit`.
 */
export interface BackendTx extends BackendReads {
  /** As `get`; others cannot write the document until the transaction ends. */
  lock(ref: BookRef, id: string): Promise<Stored | null>
  /**
   * Inserts or replaces, and returns what was there. Rejects with `UnknownBookError`. `locked` is what `lock` has just answered
   * for this document, if it was called: a backend need not read it again.
   */
  put(ref: BookRef, doc: Doc, rev: string, locked?: Stored | null): Promise<Doc | null>
  /** Removes, and returns what was there. Rejects with `UnknownBookError`. */
  delete(ref: BookRef, id: string): Promise<Doc | null>
  /**
   * Keeps the events of watched books for their durable watchers, with the transaction; called once, last. Returns the place
   * of the last one, or null when no watcher is registered for any of them.
   */
  append(events: readonly ChangeEvent<Doc>[], hops: number): Promise<number | null>
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** An event as the outbox keeps it. */
export interface OutboxEntry {
  /** Rises in commit order. */
  readonly seq: number
  /** How many post-commit hops led to it. */
  readonly hops: number
  readonly event: ChangeEvent<Doc>
}

/** A durable watcher, as people ask for it. */
export interface WatcherState {
  readonly name: string
  readonly ownerId: string
  readonly book: string
  /** How many events wait for it. */
  readonly behind: number
  /** The process that handles it now. */
  readonly holder: string | null
}

/** From the place that this holder claimed or stored last, to the last event that was handled. */
export interface CursorMove {
  readonly from: number
  readonly to: number
}

/** Where events wait for durable watchers. Time here is the backend's own, so processes agree on it. */
export interface Outbox {
  /**
   * Makes the watcher known; a new one starts with the events of transactions that begin after this. Rejects with
   * `WatcherTakenError` when the name belongs to a watcher of another book.
   */
  register(name: string, ref: BookRef): Promise<void>
  /** Forgets it, and the events that only it was waiting for. */
  forget(name: string): Promise<void>
  list(): Promise<WatcherState[]>
  /** Takes the right to handle a watcher. Null: another holder has it, or it is not registered. */
  claim(name: string, holder: string, leaseMs: Ms): Promise<{ readonly cursor: number } | null>
  /** Renews the right while it lasts. False: it has lapsed, was given back, or is another's. */
  renew(name: string, holder: string, leaseMs: Ms): Promise<boolean>
  /** Whether events wait for the watcher. Cheap: it is called often. */
  isBehind(name: string): Promise<boolean>
  /** Events of the watcher's book after `cursor`, in commit order, none missing. */
  read(name: string, cursor: number, max: number): Promise<OutboxEntry[]>
  /**
   * Moves the cursor, removes events that no watcher waits for any more, and gives the right back unless it is to be kept. False:
   * the right was lost or the cursor is not where this holder left it, and nothing moved.
   */
  advance(name: string, holder: string, cursor: CursorMove, keep: boolean): Promise<boolean>
  /** Calls back when there may be new events, from whichever process. Late or superfluous calls are fine. */
  onAppend(wake: () => void): () => void
}

/** Processes that write to the store, each with its phase-1 watchers. */
export interface Writers {
  /** Registers or renews this process, and returns the fingerprints of the others that are alive. */
  register(instance: string, fingerprint: string, leaseMs: Ms): Promise<string[]>
  leave(instance: string): Promise<void>
}

/** Where documents are kept. */
export interface StacksBackend {
  readonly name: string
  /** One writer at a time: a transaction holds the whole store until it ends. */
  readonly isExclusive: boolean
  open(options: { readonly home: string }): Promise<void>
  close(): Promise<void>
  /** Makes the book and its indexes where they are not there yet. Never drops anything. */
  ensureBook(ref: BookRef, indexes: readonly IndexFields[]): Promise<void>
  /** Waits for its turn, first come first served within this process. */
  begin(options: { readonly readOnly: boolean }): Promise<BackendTx>
  /** Single reads of what is committed. */
  readonly reads: BackendReads
  readonly outbox: Outbox
  readonly writers: Writers
}
