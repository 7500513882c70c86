import type { At, Ms } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'
import type { ActionReport } from '../api.js'
import type { BulkQuery } from './asked.js'
import type { Ahead } from './canary.js'

/** All that is known of a bulk action: what is told of it, and where to go on. */
export interface ActionRecord extends ActionReport {
  readonly query: BulkQuery
  readonly states: readonly ItemStateWord[]
  readonly pageSize: number
  readonly at: Place
  /** How many pages of changed items are written down. Absent in records of before they were. */
  readonly pages?: number
  readonly canary?: CanaryRecord
  /** When everything was changed, by the backend's time. */
  readonly endedAt?: At
  /** Who carries it out. Another one who goes on with it puts their own name here, and this one stops. */
  readonly runner: string
  /** Everything is changed and counted; only its end has to be told. */
  readonly isEnding: boolean
}

/** How far it has come. What was changed after this was written is no longer matched. */
export interface Place {
  /** Which of its states. */
  readonly state: number
  readonly cursor?: string
  /** How many this round over the states has found. */
  readonly found: number
}

export interface CanaryRecord {
  readonly waitMs: Ms
  /** How many to send ahead next: the first of these sizes, until there are none left and the rest goes. */
  readonly sizes: readonly number[]
  /** Those that were sent ahead, and have not been judged yet. */
  readonly ahead: readonly Ahead[]
  /** What they had died of. */
  readonly marks: readonly string[]
}

/** One, then ten, then the rest. */
export const CANARY_SIZES: readonly number[] = Object.freeze([1, 10])

/** Items that die, or come, after the action began are not its own: else what fails again would be taken again and again. */
export function queryOf({ query, startedAt }: ActionRecord): BulkQuery {
  // Also what happened in the very millisecond of its beginning was before it, as people see it.
  const before: At = startedAt + 1
  return { ...query, before: Math.min(query.before ?? Infinity, before) }
}

/** Within the millisecond of the beginning: what was queued in it, and has died in it, may be one of those just redriven. */
export function isOfBefore({ startedAt }: ActionRecord, { envelope, endAt }: ItemSummary): boolean {
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
  return [...narrowed, ...words].join(' ') || 'everything that it takes'
}

/** Whether a Date can say when that is. */
function isDate(at: unknown): at is At {
  return typeof at === 'number' && Math.abs(at) <= 8_640_000_000_000_000
}
