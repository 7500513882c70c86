import { type BookRef, bookKey } from '../documents/names.js'
import type { Doc } from '../documents/value.js'
import type { ChangeEvent } from '../watch/events.js'

interface Touched {
  readonly ref: BookRef
  readonly id: string
  /** Before the transaction. */
  readonly before: Doc | null
  now: Doc | null
}

/**
 * What a transaction did to each document, first to last. Only the state before it and the state now matter: whatever came in
 * between, the event is a create, an update, a delete or nothing.
 */
export class Changes {
  readonly #touched = new Map<string, Touched>()

  /** One write: what was there just before it, and what is there now. */
  record(ref: BookRef, id: string, prev: Doc | null, now: Doc | null): void {
    const key = `${bookKey(ref)} ${id}`
    const known = this.#touched.get(key)
    if (known === undefined) this.#touched.set(key, { ref, id, before: prev, now })
    else known.now = now
  }

  /** One event for each document that is not as if nothing had happened, in the order in which they were first touched. */
  events(): ChangeEvent<Doc>[] {
    return [...this.#touched.values()].flatMap(({ ref, id, before, now }) => {
      const event = changeEvent(ref, id, before, now)
      return event === undefined ? [] : [event]
    })
  }
}

/** The event of a change from one state to another; none where the document is in neither. */
export function changeEvent(
  { ownerId, book }: BookRef,
  id: string,
  prev: Doc | null,
  now: Doc | null,
): ChangeEvent<Doc> | undefined {
  if (now !== null) {
    return prev === null
      ? { type: 'create', ownerId, book, entry: now }
      : { type: 'update', ownerId, book, entry: now, prev }
  }
  return prev === null ? undefined : { type: 'delete', ownerId, book, id, prev }
}
