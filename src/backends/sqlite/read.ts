import type { FailureClass } from '../../core/failure/failure.js'
import type { Mutable } from '../../core/mutable.js'
import { listedError } from '../../core/text/error-text.js'
import type { At, Ms } from '../../core/time/time.js'
import type { ItemSummary, ItemView } from '../../ports/inspect.js'
import type { Ending, EnvelopeHead, Hold } from '../../ports/item.js'
import { statusOf } from '../shared/state-codes.js'
import { withRest } from './columns.js'
import type { ViewRow } from './sql.js'

/** The item as those see it who ask for it. `leaseEnd` puts the end of a lease into wall time. Undefined: its time is over. */
export function viewOf(row: ViewRow, now: At, leaseEnd: (until: Ms) => At): ItemView | undefined {
  const [id, type, groupId, queueAt, startAt, attempt, priority, waiter, rest, queue, state, dueAt, holdBy, holdKey] =
    row
  const [worker, leaseUntil, runAt, ending, klass, outcome, endAt, progress, lapses, crashes, keepUntil] = row.slice(
    14,
  ) as [
    ViewRow[14],
    ViewRow[15],
    ViewRow[16],
    ViewRow[17],
    ViewRow[18],
    ViewRow[19],
    ViewRow[20],
    ViewRow[21],
    ViewRow[22],
    ViewRow[23],
    ViewRow[24],
  ]
  if (keepUntil !== null && keepUntil <= now) return undefined
  const status = statusOf(state)
  const head: EnvelopeHead = { id, type, groupId, queueAt, startAt, attempt, priority }
  const view: Mutable<ItemView> = { envelope: withRest(head, waiter, rest), queue, status, lapses, crashes }
  if (ending !== null) view.ending = ending as Ending
  if (klass !== null) view.class = klass as FailureClass
  if (status === 'pending') {
    // A hold ends with its time; a pause has none.
    if (holdBy !== null && (holdBy === 'pause' || dueAt === null || dueAt > now))
      view.hold = { by: holdBy as Hold['by'], key: holdKey ?? '' }
    if (dueAt !== null) view.dueAt = dueAt
  }
  if (worker !== null) view.worker = worker
  if (leaseUntil !== null) {
    view.leaseUntil = leaseEnd(leaseUntil)
    view.running = row[27] === 1
  }
  if (runAt !== null) view.runAt = runAt
  if (status === 'completed' && outcome !== null) view.result = outcome
  if (status === 'dead' && outcome !== null) view.error = outcome
  if (endAt !== null) view.endAt = endAt
  if (progress !== null) view.progress = progress
  // An end clears it.
  if (row[26] !== null) view.cancelReason = row[26]
  return view
}

/** The item as lists show it, from a row in which there is neither a result nor progress. */
export function summaryOf(row: ViewRow, now: At, leaseEnd: (until: Ms) => At): ItemSummary | undefined {
  const view = viewOf(row, now, leaseEnd)
  return view?.error === undefined ? view : { ...view, error: listedError(view.error) }
}
