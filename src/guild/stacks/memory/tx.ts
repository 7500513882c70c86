import type { BackendTx, Stored } from '../backend.js'
import { type BookRef, bookKey } from '../documents/names.js'
import { type Doc, privateCopy } from '../documents/value.js'
import { UnknownBookError } from '../errors.js'
import type { ChangeEvent } from '../watch/events.js'
import { MemoryReads } from './reads.js'
import { type MemorySpace, type Overlay, overlayBook } from './space.js'

/** A transaction: an overlay of what it wrote, which becomes true at its commit. */
export class MemoryTx extends MemoryReads implements BackendTx {
  readonly #space: MemorySpace
  readonly #overlay: Overlay
  readonly #release: () => void
  #events: readonly { readonly event: ChangeEvent<Doc>; readonly hops: number; readonly seq: number }[] = []

  constructor(space: MemorySpace, overlay: Overlay, release: () => void) {
    super(space, overlay)
    this.#space = space
    this.#overlay = overlay
    this.#release = release
  }

  lock(ref: BookRef, id: string): Promise<Stored | null> {
    return this.get(ref, id)
  }

  async put(ref: BookRef, doc: Doc, rev: string): Promise<Doc | null> {
    return this.#set(ref, doc.id, { doc: privateCopy(doc), rev })
  }

  async delete(ref: BookRef, id: string): Promise<Doc | null> {
    return this.#set(ref, id, null)
  }

  async append(events: readonly ChangeEvent<Doc>[], hops: number): Promise<number | null> {
    const watched = new Set([...this.#space.watchers.values()].map(({ ref }) => bookKey(ref)))
    const kept = events.filter((event) => watched.has(bookKey(event)))
    this.#events = kept.map((event, i) => ({ event: privateCopy(event), hops, seq: this.#space.lastSeq + i + 1 }))
    return this.#events.at(-1)?.seq ?? null
  }

  async commit(): Promise<void> {
    const space = this.#space
    space.apply(this.#overlay)
    space.outbox.push(...this.#events)
    space.lastSeq += this.#events.length
    if (this.#events.length > 0) space.wake()
    this.#release()
  }

  async rollback(): Promise<void> {
    this.#release()
  }

  #set(ref: BookRef, id: string, stored: Stored | null): Doc | null {
    const key = bookKey(ref)
    if (!this.#space.books.has(key)) throw new UnknownBookError(ref.ownerId, ref.book)
    const prev = this.stored(key, id)
    overlayBook(this.#overlay, key).set(id, stored)
    return prev === null ? null : privateCopy(prev.doc)
  }
}
