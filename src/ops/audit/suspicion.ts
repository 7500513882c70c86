import type { At } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import type { FindingCode } from '../api.js'

/** What an audit has found and confirmed, and what would mend it. */
export interface Found {
  readonly code: FindingCode
  readonly id: string
  readonly text: string
  readonly repair: string
  /** Absent: a person has to decide. */
  readonly mend?: Mend
  /** What no guard of a settlement can tell apart from itself once it is mended: only one audit at a time mends what has this name. */
  readonly turn?: string
}

export type Mend =
  | { readonly by: 'settlement'; readonly settlement: Settlement }
  /** What any worker does when it looks at the queue: leases that have run out end, and are counted. */
  | { readonly by: 'reclaim'; readonly queue: string }

/** Effects that happen only if the item still is where it was seen. */
export function onlyIfStill(view: ItemSummary, effects: readonly Effect[]): Mend {
  return { by: 'settlement', settlement: { guard: { by: 'status', id: view.envelope.id, in: [view.status] }, effects } }
}

/** What stands still for less than this may just be under way. */
export const GRACE_MS = 60_000

/** The lists of what has not ended. */
export const UNFINISHED = ['waiting', 'scheduled', 'retrying', 'blocked', 'active'] as const

export const isUnfinished = (view: ItemSummary | undefined): view is ItemSummary =>
  view?.status === 'pending' || view?.status === 'running'

export function agoOf(at: At | undefined, now: At): number {
  return at === undefined ? 0 : Math.max(0, now - at)
}
