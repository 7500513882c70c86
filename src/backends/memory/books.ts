import type { At } from '../../core/time.js'
import { Book, type Shelf } from './book.js'
import type { KeyView } from './key-space.js'
import type { FiledRules } from './queues.js'
import { viewIn } from './views.js'

/** The open books of a backend, by the prefix of their keys. */
export class Books {
  readonly #byPrefix = new Map<string, Book>()

  /** The view that a key is, if it belongs to a book. */
  viewOf(key: string): KeyView | undefined {
    for (const [prefix, book] of this.#byPrefix) {
      if (!key.startsWith(prefix)) continue
      const view = viewIn(book, key.slice(prefix.length))
      if (view !== undefined) return view
    }
    return undefined
  }

  open(prefix: string, shelf: Shelf): Book {
    const found = this.#byPrefix.get(prefix)
    if (found !== undefined) return found
    const book = new Book(prefix, shelf)
    this.#byPrefix.set(prefix, book)
    // Texts that were there before the book: from now on they are counted, so that its records are looked for among them.
    for (const { key, value, expiresAt } of shelf.keys.textsUnder(prefix)) shelf.keys.keepText(key, value, expiresAt)
    takeRules(book)
    return book
  }

  /** Goes on giving back their places to items whose pause has ended. */
  free(now: At): void {
    for (const { pauses } of this.#byPrefix.values()) pauses.free(now)
  }

  /** What decides which messages are held, for the file. */
  rules(): FiledRules {
    const books = [...this.#byPrefix.values()]
    return {
      gates: books.flatMap(({ prefix, gates }) => [...gates.all()].map((gate) => ({ prefix, gate }))),
      pauses: books.flatMap(({ prefix, pauses }) =>
        [...pauses.all()].map(({ what, name }) => ({ prefix, what, name })),
      ),
    }
  }
}

/** Gates and pauses that were in the file wait for their book. */
function takeRules(book: Book): void {
  const { queues } = book.shelf
  const { gates, pauses } = queues.dormant
  const isOurs = (rule: { readonly prefix: string }) => rule.prefix === book.prefix
  queues.dormant = {
    gates: gates.filter((rule) => !isOurs(rule)),
    pauses: pauses.filter((rule) => !isOurs(rule)),
  }
  for (const { gate } of gates.filter(isOurs)) book.gates.restore(gate)
  for (const { what, name } of pauses.filter(isOurs)) book.pauses.restore(what, name)
}
