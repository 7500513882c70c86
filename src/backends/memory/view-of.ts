import { listedError } from '../../core/error-text.js'
import type { At } from '../../core/time.js'
import type { Envelope, EnvelopeHead } from '../../ports/item.js'
import type { ItemSummary, ItemView } from '../../ports/ledger.js'
import type { Book } from './book.js'
import type { ItemRecord } from './item-record.js'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** The item as those see it who ask for it: without its input, with what a plain system wrote of it. */
export function viewOf(book: Book, record: ItemRecord, now: At): ItemView {
  const view: Writable<ItemView> = { ...standingOf(record) }
  const { status, extras } = record
  if (extras?.progress !== undefined) view.progress = extras.progress
  const result = record.result ?? textOf(book, book.names.result, record.id, now)
  if (result !== undefined && status === 'success') view.result = result
  const error = errorOf(book, record, now)
  if (error !== undefined) view.error = error
  return view
}

/** The item as lists show it: its result and progress are not touched, of its error there is the first line. */
export function summaryOf(book: Book, record: ItemRecord, now: At): ItemSummary {
  const error = errorOf(book, record, now)
  const summary = standingOf(record)
  return error === undefined ? summary : { ...summary, error: listedError(error) }
}

function errorOf(book: Book, { id, status, extras }: ItemRecord, now: At): string | undefined {
  return extras?.error ?? (status === 'dead' ? textOf(book, book.names.error, id, now) : undefined)
}

function standingOf(record: ItemRecord): ItemSummary {
  const { message, status, extras, holder } = record
  const view: Writable<ItemSummary> = {
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
  if (extras?.cancelled !== undefined && record.endAt === undefined) view.cancelled = extras.cancelled
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
