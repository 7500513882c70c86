import type { FailureClass } from '../../core/failure/failure.js'
import type { Mutable } from '../../core/mutable.js'
import { LISTED_ERROR_CHARACTERS, listedError } from '../../core/text/error-text.js'
import type { ItemSummary, ItemView } from '../../ports/inspect.js'
import type { Ending, EnvelopeHead } from '../../ports/item.js'
import { joinEnvelope } from '../shared/envelope-columns.js'

/** One row of either table as `row_to_json` gives it, with the names of its queue and type. */
export interface ViewRow {
  readonly id: string
  readonly seq: number
  readonly queue_name: string
  readonly type: string
  readonly group_id: string | null
  readonly priority: number
  readonly attempt: number
  readonly state: number
  readonly queue_at: number
  readonly start_at: number
  readonly run_at: number | null
  readonly envelope_rest: string | null
  readonly lapses: number
  readonly crashes: number
  readonly progress: string | null
  readonly due_at: number | null
  readonly hold_by: 'gate' | 'pause' | 'limit' | null
  readonly hold_key: string | null
  readonly worker: string | null
  readonly lease_until: number | null
  readonly cancelled: string | null
  readonly running: boolean | null
  readonly end_at: number | null
  readonly ending: Ending | null
  readonly class: FailureClass | null
  readonly outcome: string | null
}

/**
 * What `read` selects, of both tables alike. What is on hold for a pause that is over has its place back, though
 * no claim has put it there yet; and a hold ends with its time.
 */
export const ITEM_VIEW =
  `i.id, i.seq, q.name as queue_name, h.type, i.group_id, i.priority, i.attempt, i.state, i.queue_at, i.start_at,
  i.run_at, i.envelope_rest, i.lapses, i.crashes, i.progress, i.due_at,
  case when {is_held} then i.hold_by end as hold_by, case when {is_held} then i.hold_key end as hold_key,
  i.worker, i.lease_until, i.cancelled, i.running, null::bigint as end_at, null::text as ending, null::text as class, null::text as outcome`.replaceAll(
    '{is_held}',
    `(i.state = 1 and coalesce(i.due_at > {now}, true)
    or i.state = 3 and exists (select from {schema}.pause p where p.key = i.hold_key and not p.is_resumed))`,
  )

export const ENDED_VIEW = `f.id, f.seq, q.name as queue_name, h.type, f.group_id, f.priority, f.attempt, f.state, f.queue_at,
  f.start_at, f.run_at, f.envelope_rest, f.lapses, f.crashes, f.progress, null::bigint, null::text, null::text, null::text, null::bigint, null::text,
  null::boolean as running, f.end_at, f.ending, f.class, f.outcome`

/** The first characters of an outcome that is an error: what a list reads of it. A result is not even fetched. */
export const LISTED_OUTCOME = `case when f.state > 5 then left(f.outcome, ${LISTED_ERROR_CHARACTERS + 1}) end`

/** What lists select: neither result nor progress, and of an error what they show. */
export const ITEM_SUMMARY = ITEM_VIEW.replace('i.progress', 'null::text as progress')
export const ENDED_SUMMARY = ENDED_VIEW.replace('f.progress', 'null::text as progress')
  .replace('f.outcome', `${LISTED_OUTCOME} as outcome`)
  // The names that `row_to_json` is to give its columns, where no other row gives them.
  .replace(
    'null::bigint, null::text, null::text, null::text, null::bigint, null::text',
    'null::bigint as due_at, null::text as hold_by, null::text as hold_key, null::text as worker, null::bigint as lease_until, null::text as cancelled',
  )

const COMPLETED = 5

/** The item as those see it who ask for it. */
export function viewFrom(row: ViewRow): ItemView {
  const { id, type, priority, attempt } = row
  const columns = {
    id,
    type,
    groupId: row.group_id ?? id,
    queueAt: row.queue_at,
    startAt: row.start_at,
    attempt,
    priority,
  }
  const isRunning = row.state === 2
  const hasEnded = row.state >= COMPLETED
  const view: Mutable<ItemView> = {
    envelope: joinEnvelope(columns, row.envelope_rest) as EnvelopeHead,
    queue: row.queue_name,
    status: isRunning ? 'running' : !hasEnded ? 'pending' : row.state === COMPLETED ? 'completed' : 'dead',
    lapses: row.lapses,
    crashes: row.crashes,
  }
  if (row.ending !== null) view.ending = row.ending
  if (row.class !== null) view.class = row.class
  if (!isRunning && !hasEnded) {
    if (row.hold_by !== null && row.hold_key !== null) view.hold = { by: row.hold_by, key: row.hold_key }
    if (row.due_at !== null) view.dueAt = row.due_at
  }
  if (isRunning) {
    if (row.worker !== null) view.worker = row.worker
    if (row.lease_until !== null) view.leaseUntil = row.lease_until
    view.running = row.running === true
  }
  if (row.run_at !== null) view.runAt = row.run_at
  if (row.end_at !== null) view.endAt = row.end_at
  if (row.progress !== null) view.progress = row.progress
  if (row.cancelled !== null && !hasEnded) view.cancelReason = row.cancelled
  if (row.outcome !== null && hasEnded) {
    if (row.state === COMPLETED) view.result = row.outcome
    else view.error = row.outcome
  }
  return view
}

/** The item as lists show it, from a row in which there is neither a result nor progress. */
export function summaryFrom(row: ViewRow): ItemSummary {
  const view = viewFrom(row)
  return view.error === undefined ? view : { ...view, error: listedError(view.error) }
}

/** Puts the place of the time parameter into a statement. */
export function withNow(sql: string, parameter: string): string {
  return sql.replaceAll('{now}', `{schema}.at(${parameter}::bigint)`)
}

/** The same for a statement that reads many rows: the time is asked for once, not for each of them. */
export function withOneNow(sql: string, parameter: string): string {
  return `with t as materialized (${withNow('select {now} as now', parameter)}) ${sql.replaceAll('{now}', '(select now from t)')}`
}
