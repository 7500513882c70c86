import type { At } from '../../core/time/time.js'
import type { LinkDoc, WritDoc } from '../../guild/clerk/writs/writ.js'
import type { RetryDescription } from '../../guild/clockworks-retry/api.js'
import type { DispatchRow, EngineRow, InputRequestDoc } from '../../guild/spider/rigs/rig.js'
import type { WritSummary } from '../api.js'
import { durationText, instantText } from '../duration-text.js'
import type { Reason } from '../items/explain.js'
import type { Rig } from './rig-report.js'

/** Everything that the reasons of a writ are derived from. */
export interface WritFacts {
  readonly writ: WritDoc
  readonly now: At
  /** The oldest first. */
  readonly rigs: readonly Rig[]
  /** Its entry in Spider's dispatch queue, if any. */
  readonly dispatch: DispatchRow | undefined
  readonly outbound: readonly LinkDoc[]
  /** The writs that it waits for, from the dispatch queue, its links or Spider's status. */
  readonly blockerIds: readonly string[]
  /** Writs that the reasons name. */
  readonly others: ReadonlyMap<string, WritDoc>
  /** Its unfinished children, at most a hundred. */
  readonly openChildren: readonly WritDoc[]
  readonly requests: ReadonlyMap<string, InputRequestDoc>
  /** How many engines run in the whole guild. */
  readonly running: number
  readonly retry: RetryDescription
  /** Whether the retry observer could not open it again, and has stopped trying. */
  readonly isRetryDead: boolean
  /** Whether the guild has a retry observer; undefined: unknown. */
  readonly observer: { readonly isThere: boolean; readonly behind: number; readonly holder: string | null } | undefined
  /** Why the work items of its running engines do not run, by engine. */
  readonly items: ReadonlyMap<string, { readonly id: string; readonly reason: Reason }>
}

/** A writ in a terminal phase has `resolvedAt`, whatever its type calls that phase. */
export function hasEnded({ resolvedAt }: WritDoc): boolean {
  return resolvedAt !== undefined
}

/** ` since …` for a time as documents store it. */
export function sinceText(iso: string | undefined, now: At): string {
  const at = Date.parse(iso ?? '')
  return Number.isNaN(at) ? '' : ` since ${instantText(at)} (${durationText(now - at)})`
}

/** A writ as a reason names it. */
export function namedText(id: string, writ: WritDoc | undefined): string {
  return writ === undefined ? `${id} (which does not exist)` : `${id} (${writ.phase}: ${writ.title})`
}

const NAMED = 5

/** The first of these writs by name, and how many more there are. */
export function namedTexts(ids: readonly string[], writs: ReadonlyMap<string, WritDoc>): string {
  const named = ids.slice(0, NAMED).map((id) => namedText(id, writs.get(id)))
  return `${named.join(', ')}${ids.length > NAMED ? ` and ${ids.length - NAMED} more` : ''}`
}

export function engineName({ engineId }: EngineRow): string {
  return `Engine "${engineId}"`
}

/** Why a writ has not ended, as a code that programs can compare. */
export type WritReasonCode =
  | 'draft'
  | 'phase'
  | 'queued'
  | 'delayed'
  | 'held'
  | 'delayed'
  | 'not-dispatched'
  | 'engine-running'
  | 'engine-lapsed'
  | 'engine-session'
  | 'engine-blocked'
  | 'engine-held'
  | 'engine-ready'
  | 'graft'
  | 'rig-ending'
  | 'stuck-retried'
  | 'stuck-retry-failed'
  | 'stuck-at-cap'
  | 'stuck-for-good'
  | 'stuck-refused'
  | 'stuck-by-blocker'
  | 'stuck-by-cycle'
  | 'stuck-by-hand'
  | 'children'

/** One reason, and what would resolve it. */
export interface WritReason {
  readonly code: WritReasonCode
  readonly text: string
  readonly remedy: string
}

/** A writ as lists show it. */
export function writSummary({ id, type, title, phase, parentId, createdAt, updatedAt }: WritDoc): WritSummary {
  return { id, type, title, phase, createdAt, updatedAt, ...(parentId === undefined ? {} : { parentId }) }
}
