import type { At } from '../../core/time.js'
import { readEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import { readState } from '../../ports/plain/state.js'
import type { Book } from './book.js'
import type { DeadLettered } from './dead-letters.js'
import type { ItemRecord } from './item-record.js'
import { applyStateText, envelopeFromState, isOver } from './item-text.js'
import type { Message } from './message.js'
import type { MessageQueue } from './message-queue.js'
import { DEFAULT_QUEUE } from './stored.js'

/** Looks into the messages that came as text, so that they are items like any other. Each is read once. */
export function readUnread(book: Book, now: At): void {
  const { queues } = book.shelf
  for (let message = queues.unread.first(); message !== undefined; message = queues.unread.first()) {
    queues.markRead(message)
    const envelope = message.owner === undefined ? readEnvelope(message.body) : undefined
    if (envelope === undefined) continue
    const known = book.known(envelope.id) ?? (book.count.texts > 0 ? itemFromText(book, envelope.id, now) : undefined)
    if (known === undefined) adopt(book, envelope, message)
    else if (known.message === undefined && !known.hasEnded) book.link(known, message, envelope)
  }
}

/** A record for a message that somebody else pushed. */
export function adopt(book: Book, envelope: Envelope, message: Message): ItemRecord {
  const record = book.add(envelope, message, book.shelf.queues.named(message.queueName))
  record.isFound = true
  record.fence = message.fence
  return record
}

/** A record for an item that so far only a plain system has written down. */
export function itemFromText(book: Book, id: string, now: At): ItemRecord | undefined {
  const { keys, queues } = book.shelf
  const { names } = book
  const text = keys.text(names.state(id), now)
  const state = readState(text?.value)
  if (state === undefined || text === undefined) return undefined
  const record = book.add(envelopeFromState(state), undefined, queues.named(state.marks?.queue ?? DEFAULT_QUEUE))
  record.isFound = true
  record.hasInput = false
  record.fence = state.marks?.fence ?? 0
  applyStateText(record, state, isOver(state, keys.text(names.result(id), now) !== undefined))
  const cancel = keys.text(names.cancel(id), now)
  if (cancel !== undefined) record.withExtras().cancelled = cancel.value
  book.weigh(record)
  book.keep(record, text.expiresAt)
  book.traitsChanged(record)
  book.stateChanged(record)
  return record
}

/** The dead letter of an item that a plain system parked: it has the envelope whole. */
export function deadLetterOf(
  book: Book,
  id: string,
): { readonly queue: MessageQueue; readonly entry: DeadLettered; readonly envelope: Envelope } | undefined {
  const quoted = JSON.stringify(id)
  for (const queue of book.shelf.queues.all()) {
    for (const entry of queue.dead.list) {
      const { body } = entry
      const envelope = body.includes(quoted) ? readEnvelope(body) : undefined
      if (envelope?.id === id) return { queue, entry, envelope }
    }
  }
  return undefined
}
