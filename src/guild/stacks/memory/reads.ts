import type { BackendReads, Stored } from '../backend.js'
import { type BookRef, bookKey } from '../documents/names.js'
import { type Doc, privateCopy } from '../documents/value.js'
import type { Filter, InternalQuery } from '../query/filter.js'
import { arrange, matches } from '../query/matches.js'
import type { MemorySpace, Overlay } from './space.js'

/** Reads of what is committed, seen through an overlay. Their cost is that of the documents read, never of a copy. */
export class MemoryReads implements BackendReads {
  readonly #space: MemorySpace
  readonly #overlay: Overlay

  constructor(space: MemorySpace, overlay: Overlay) {
    this.#space = space
    this.#overlay = overlay
  }

  async get(ref: BookRef, id: string): Promise<Stored | null> {
    const stored = this.stored(bookKey(ref), id)
    return stored === null ? null : privateCopy(stored)
  }

  async find(ref: BookRef, query: InternalQuery): Promise<Doc[]> {
    const found: Doc[] = []
    for (const doc of this.#documents(ref)) if (matches(doc, query.filter)) found.push(doc)
    return arrange(found, query).map(privateCopy)
  }

  async count(ref: BookRef, filter: Filter): Promise<number> {
    let count = 0
    for (const doc of this.#documents(ref)) if (matches(doc, filter)) count += 1
    return count
  }

  /** The very object that is kept: not for callers. */
  stored(key: string, id: string): Stored | null {
    const own = this.#overlay.get(key)?.get(id)
    return own === undefined ? (this.#space.books.get(key)?.get(id) ?? null) : own
  }

  *#documents(ref: BookRef): Generator<Doc> {
    const key = bookKey(ref)
    const overlay = this.#overlay.get(key)
    for (const [id, { doc }] of this.#space.books.get(key) ?? []) if (overlay?.has(id) !== true) yield doc
    for (const stored of overlay?.values() ?? []) if (stored !== null) yield stored.doc
  }
}
