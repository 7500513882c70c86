import type { At } from '../../core/time.js'
import type { Envelope, EnvelopeHead } from '../../ports/item.js'
import type { ItemView } from '../../ports/ledger.js'
import type { Book } from './book.js'
import type { ItemRecord } from './item-record.js'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** The item as people and waiters see it: without its input, with what a plain system wrote of it. */
export function viewOf(book: Book, record: ItemRecord, now: At): ItemView {
  const { message, status, extras, holder } = record
  const view: Writable<ItemView> = {
    envelope: withoutInput(record.envelope),
    queue: record.queue.name,
    status,
    lapses: message?.lapses ?? extras?.lapses ?? 0,
    crashes: message?.crashes ?? extras?.crashes ?? 0,
  }
  if (record.ending !== undefined) view.ending = record.ending
  if (extras?.class !== undefined) view.class = extras.class
  if (status === 'pending' && message !== undefined) {
    if (message.hold !== undefined) view.hold = message.hold
    if (message.dueAt !== Number.POSITIVE_INFINITY) view.dueAt = message.dueAt
  }
  if (holder !== undefined) view.holder = holder
  if (status === 'running' && message?.lease !== undefined) {
    view.leaseUntil = message.lease.until
    view.running = message.lease.running
  }
  if (record.runAt !== undefined) view.runAt = record.runAt
  if (record.endAt !== undefined) view.endAt = record.endAt
  if (extras?.progress !== undefined) view.progress = extras.progress
  if (extras?.cancelled !== undefined && record.endAt === undefined) view.cancelled = extras.cancelled
  const result = record.result ?? textOf(book, book.names.result, record.id, now)
  const error = extras?.error ?? (status === 'dead' ? textOf(book, book.names.error, record.id, now) : undefined)
  if (result !== undefined && status === 'success') view.result = result
  if (error !== undefined) view.error = error
  return view
}

function withoutInput(envelope: Envelope): EnvelopeHead {
  const { input: _, ...rest } = envelope
  // The rest of an index signature loses the named fields in its type; they are all there.
  return rest as unknown as EnvelopeHead
}

function textOf(book: Book, name: (id: string) => string, id: string, now: At): string | undefined {
  return book.count.texts === 0 ? undefined : book.shelf.keys.text(name(id), now)?.value
}
