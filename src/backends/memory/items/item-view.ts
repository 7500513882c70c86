import type { Mutable } from '../../../core/mutable.js'
import { listedError } from '../../../core/text/error-text.js'
import type { ItemSummary, ItemView } from '../../../ports/inspect.js'
import type { Envelope, EnvelopeHead } from '../../../ports/item.js'
import type { ItemRecord } from './item-record.js'

/** The item as its readers see it: without its input. */
export function viewOf(record: ItemRecord): ItemView {
  const view: Mutable<ItemView> = { ...standingOf(record) }
  const { extras, result } = record
  if (extras?.progress !== undefined) view.progress = extras.progress
  if (result !== undefined) view.result = result
  if (extras?.error !== undefined) view.error = extras.error
  return view
}

/** The item as lists show it: without result and progress, and with the first line of its error. */
export function summaryOf(record: ItemRecord): ItemSummary {
  const error = record.extras?.error
  const summary = standingOf(record)
  return error === undefined ? summary : { ...summary, error: listedError(error) }
}

function standingOf(record: ItemRecord): ItemSummary {
  const { message, status, extras, worker } = record
  const view: Mutable<ItemSummary> = {
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
  if (worker !== undefined) view.worker = worker
  if (status === 'running' && message?.lease !== undefined) {
    view.leaseUntil = message.lease.until
    view.running = message.lease.running
  }
  if (record.runAt !== undefined) view.runAt = record.runAt
  if (record.endAt !== undefined) view.endAt = record.endAt
  if (extras?.cancelled !== undefined && record.endAt === undefined) view.cancelReason = extras.cancelled
  return view
}

function withoutInput(envelope: Envelope): EnvelopeHead {
  const { input: _, ...rest } = envelope
  // The rest of an index signature loses the named fields in its type; they are all there.
  return rest as unknown as EnvelopeHead
}
