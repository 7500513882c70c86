import type { BookEntry } from '../documents/value.js'

/** A document was created. */
export interface CreateEvent<T extends BookEntry = BookEntry> {
  readonly type: 'create'
  readonly ownerId: string
  readonly book: string
  readonly entry: T
}

/** A document was written again, also when it was written with the same content. */
export interface UpdateEvent<T extends BookEntry = BookEntry> {
  readonly type: 'update'
  readonly ownerId: string
  readonly book: string
  readonly entry: T
  readonly prev: T
}

/** A document is gone. */
export interface DeleteEvent<T extends BookEntry = BookEntry> {
  readonly type: 'delete'
  readonly ownerId: string
  readonly book: string
  readonly id: string
  readonly prev: T
}

/** What a watcher is called with. Each handler gets a private copy. */
export type ChangeEvent<T extends BookEntry = BookEntry> = CreateEvent<T> | UpdateEvent<T> | DeleteEvent<T>

/** A watcher's function. */
export type ChangeHandler<T extends BookEntry = BookEntry> = (event: ChangeEvent<T>) => void | Promise<void>

/** How a book is watched. */
export interface WatchOptions {
  /**
   * True (default), phase 1: inside the transaction, after each write, uncoalesced; a throw rolls everything back.
   * False, phase 2: after the commit, on coalesced events; a throw is reported as a warning and changes nothing.
   */
  readonly failOnError?: boolean
  /**
   * A name under which the store remembers how far this watcher has come: phase 2, at least once, in commit order, also after
   * a crash; in a fleet, one process at a time handles it. Leave `failOnError` out or false with it.
   */
  readonly durable?: string
}
