import type { At } from '../../../core/time/time.js'
import type { OutboxEntry, Stored } from '../backend.js'
import type { BookRef } from '../documents/names.js'
import { FifoLock } from '../transaction/fifo-lock.js'

/** One change of one document: what is there now, and null for nothing. */
export type Overlay = Map<string, Map<string, Stored | null>>

/** A durable watcher's progress. */
export interface WatcherRow {
  readonly ref: BookRef
  cursor: number
  holder: string | null
  until: At
}

/**
 * What several stores in one process share when they are to be one: documents, events and claims. A test gives one to two
 * backends to have two "processes" on the same data.
 */
export class MemorySpace {
  readonly books = new Map<string, Map<string, Stored>>()
  readonly watchers = new Map<string, WatcherRow>()
  readonly writers = new Map<string, { readonly fingerprint: string; readonly until: At }>()
  readonly lock = new FifoLock()
  readonly listeners = new Set<{ readonly wake: () => void }>()
  outbox: OutboxEntry[] = []
  lastSeq = 0
  /** What open snapshots have to keep of the past. */
  readonly snapshots = new Set<Overlay>()

  /** Makes an overlay true. Snapshots that are open keep what they saw. */
  apply(changes: Overlay): void {
    for (const [key, documents] of changes) {
      const book = this.books.get(key)
      if (book === undefined) continue
      for (const [id, stored] of documents) {
        for (const snapshot of this.snapshots) remember(snapshot, key, id, book.get(id) ?? null)
        if (stored === null) book.delete(id)
        else book.set(id, stored)
      }
    }
  }

  wake(): void {
    for (const { wake } of [...this.listeners]) queueMicrotask(wake)
  }
}

function remember(snapshot: Overlay, key: string, id: string, before: Stored | null): void {
  const kept = overlayBook(snapshot, key)
  if (!kept.has(id)) kept.set(id, before)
}

/** The part of an overlay that belongs to a book, made when first asked for. */
export function overlayBook(overlay: Overlay, key: string): Map<string, Stored | null> {
  const known = overlay.get(key)
  if (known !== undefined) return known
  const made = new Map<string, Stored | null>()
  overlay.set(key, made)
  return made
}
