import type { At } from '../../core/time.js'
import type { Book } from './book.js'
import { DAY } from './kept-for.js'

/** The native ledger has changed the item: texts about its state are old news. */
export function dropStateText(book: Book, id: string): void {
  if (book.count.texts > 0) book.shelf.keys.dropText(book.names.state(id))
}

/** The item ends, begins again or goes: nothing that a plain system wrote of it holds any more. */
export function dropTexts(book: Book, id: string): void {
  if (book.count.texts === 0) return
  const { keys } = book.shelf
  const { state, result, error, cancel, heartbeat } = book.names
  for (const name of [state, result, error, cancel, heartbeat]) keys.dropText(name(id))
}

/**
 * The item runs here now. If a plain system had it, that one must find out: it looks for its own token before it settles.
 * The text outlives the run, because the other may come late.
 */
export function takeOver(book: Book, id: string, token: string, now: At): void {
  const { keys } = book.shelf
  if (book.count.texts === 0 || keys.text(book.names.state(id), now) === undefined) return
  keys.dropText(book.names.state(id))
  keys.keepText(book.names.run(id), token, now + DAY)
}
