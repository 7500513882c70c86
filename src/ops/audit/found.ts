import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import type { AuditReport, FindingCode } from '../api.js'

/** What an audit has found and confirmed, and how to repair it. */
export interface Found {
  readonly code: FindingCode
  readonly id: string
  readonly text: string
  readonly repair: string
  /** Absent: a person has to decide. */
  readonly fix?: Repair
  /** For a repair that no guard protects from being made twice: only one audit at a time repairs what has this name. */
  readonly lock?: string
}

export type Repair =
  | { readonly by: 'settlement'; readonly settlement: Settlement }
  /** What the claim of any worker does: reclaim lapsed leases and count them. */
  | { readonly by: 'reclaim'; readonly queue: string }

/** Effects that apply only if the item still has the status that was read. */
export function ifUnchanged(view: ItemSummary, effects: readonly Effect[]): Repair {
  return { by: 'settlement', settlement: { guard: { by: 'status', id: view.envelope.id, in: [view.status] }, effects } }
}

/** An item that has not moved for less than this may just be in progress. */
export const GRACE_MS = 60_000

/** The states of unfinished items. */
export const UNFINISHED = ['waiting', 'scheduled', 'retrying', 'blocked', 'active'] as const

export const isUnfinished = (view: ItemSummary | undefined): view is ItemSummary =>
  view?.status === 'pending' || view?.status === 'running'

export function ageOf(at: At | undefined, now: At): number {
  return at === undefined ? 0 : Math.max(0, now - at)
}

/** What an audit skipped, and how much of it. */
export type Skipped = AuditReport['skipped'][number]

/** An entry of the report, if the count is not zero. */
export function counted(code: Skipped['code'], count: number, text: (count: number) => string): readonly Skipped[] {
  return count === 0 ? [] : [{ code, count, text: text(count) }]
}
