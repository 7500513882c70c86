import type { At, Ms } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { ItemState } from '../../ports/words.js'
import type { ActionReport } from '../api.js'
import type { CanaryItem } from './canary.js'
import type { BulkQuery } from './selection.js'

/** Everything stored about a bulk action: its report, and where to continue. */
export interface ActionRecord extends ActionReport {
  readonly query: BulkQuery
  readonly states: readonly ItemState[]
  readonly pageSize: number
  readonly at: ActionPosition
  /** How many pages of changed items are stored. */
  readonly pages?: number
  readonly canary?: CanaryRecord
  /** When everything was changed, by the backend's time. */
  readonly endedAt?: At
  /** The process that runs the action. A process that continues it writes its own id here, and this one stops. */
  readonly runner: string
  /** Everything is changed and counted; only the final log line is missing. */
  readonly isEnding: boolean
}

/** How far the action has come. Items changed after this was stored no longer match the query. */
export interface ActionPosition {
  /** Index into `states`. */
  readonly state: number
  readonly cursor?: string
  /** How many items this round over the states has found. */
  readonly found: number
}

export interface CanaryRecord {
  readonly waitMs: Ms
  /** The sizes of the next canary pages. When none is left, the rest follows. */
  readonly sizes: readonly number[]
  /** Items sent ahead whose outcome is not known yet. */
  readonly ahead: readonly CanaryItem[]
  /** The fingerprints of what they had died of. */
  readonly marks: readonly string[]
}

/** One, then ten, then the rest. */
export const CANARY_SIZES: readonly number[] = Object.freeze([1, 10])

/** The action leaves out items that die or arrive after it began; otherwise it would redrive a failing item again and again. */
export function queryOf({ query, startedAt }: ActionRecord): BulkQuery {
  // People expect an item that died in the same millisecond to be included.
  const before: At = startedAt + 1
  return { ...query, before: Math.min(query.before ?? Infinity, before) }
}

/** An item queued and dead within the starting millisecond may be one that the action itself has just redriven. */
export function isOlderThan({ startedAt }: ActionRecord, { envelope, endAt }: ItemSummary): boolean {
  return endAt === undefined || endAt < startedAt || envelope.queueAt < startedAt
}

export function reportOf(record: ActionRecord): ActionReport {
  const { id, verb, target, who, why, startedAt, total, done, passed, state, because } = record
  const report = { id, verb, target, who, why, startedAt, total, done, passed, state }
  return because === undefined ? report : { ...report, because }
}

/** The query as a person would type it. */
export function queryText({ query, states, verb }: ActionRecord): string {
  const words = Object.entries(query).map(([name, value]) => {
    const isInstant = name === 'before' || name === 'after'
    return `${name}:${isInstant && isDate(value) ? new Date(value).toISOString() : String(value)}`
  })
  const narrowed = states.length === 1 && verb !== 'redrive' && verb !== 'discard' ? [`state:${states[0]}`] : []
  return [...narrowed, ...words].join(' ') || 'everything it applies to'
}

/** Whether a Date can hold that instant. */
function isDate(at: unknown): at is At {
  return typeof at === 'number' && Math.abs(at) <= 8_640_000_000_000_000
}
