import type { At } from '../../core/time.js'
import { readState, type StoredState } from '../../ports/plain/state.js'
import type { Book } from './book.js'
import type { GroupRecord } from './group-record.js'
import type { ItemRecord } from './item-record.js'
import { applyStateText, isOver } from './item-text.js'

/** A system on the plain path wrote the state of an item: its record follows, and whoever waits for it hears. */
export function stateWritten(
  book: Book,
  id: string,
  record: ItemRecord | undefined,
  text: string,
  expiresAt: At,
  now: At,
): void {
  const state = readState(text)
  if (state !== undefined) follow(book, id, record, state, hasResult(book, id, record, now), expiresAt, now)
}

/** It wrote a result: the last thing it does for a success, and what makes it one. */
export function resultWritten(book: Book, id: string, record: ItemRecord | undefined, now: At): void {
  const text = book.shelf.keys.text(book.names.state(id), now)
  const state = readState(text?.value)
  if (state?.status === 'success' && text !== undefined) follow(book, id, record, state, true, text.expiresAt, now)
}

export function cancelledElsewhere(book: Book, record: ItemRecord, reason: string | undefined): void {
  record.withExtras().cancelled = reason
  if (reason === undefined || record.holder === undefined) return
  book.shelf.signals.tell(record.holder, record.id)
}

/** Tells those who wait for the item, once. It stays until one of them has read it. */
export function tellWatchers(book: Book, record: ItemRecord, now: At): void {
  const { signals } = book.shelf
  const { waiter } = record.envelope
  const watchers = record.extras?.watchers
  let isHeard = waiter !== undefined && signals.tell(waiter, record.id)
  if (watchers !== undefined) {
    for (const inbox of watchers) if (inbox !== waiter && signals.tell(inbox, record.id)) isHeard = true
    record.withExtras().watchers = undefined
  }
  if (isHeard) book.await(record, now)
}

export function tellGroupWatchers(book: Book, group: GroupRecord, now: At): void {
  if (group.watchers === undefined) return
  let isHeard = false
  for (const inbox of group.watchers) if (book.shelf.signals.tellGroup(inbox, group.id)) isHeard = true
  group.watchers = undefined
  if (isHeard) book.await(group, now)
}

function follow(
  book: Book,
  id: string,
  record: ItemRecord | undefined,
  state: StoredState,
  hasItsResult: boolean,
  expiresAt: At,
  now: At,
): void {
  const isEnd = isOver(state, hasItsResult)
  const hadEnded = record?.hasEnded === true
  if (record !== undefined) {
    applyStateText(record, state, isEnd)
    // The run has begun: should its lease run out, that is a crash.
    if (record.status === 'running' && record.message !== undefined) record.queue.setRunning(record.message, true)
    book.weigh(record)
    if (isEnd) book.keep(record, expiresAt)
    else if (hadEnded) book.unkeep(record)
    book.traitsChanged(record)
    book.stateChanged(record)
  }
  if (!isEnd || hadEnded) return
  book.gates.ended(id, state.status === 'success', now)
  if (record !== undefined) tellWatchers(book, record, now)
}

function hasResult(book: Book, id: string, record: ItemRecord | undefined, now: At): boolean {
  return record?.result !== undefined || book.shelf.keys.text(book.names.result(id), now) !== undefined
}
