import type { At } from '../../core/time.js'
import type { LinkDoc, WritDoc } from '../../guild/clerk/writ.js'
import type { RetryDescription } from '../../guild/clockworks-retry/api.js'
import type { DispatchRow, EngineRow, InputRequestDoc } from '../../guild/spider/rig.js'
import type { SpiderWritStatus } from '../../guild/spider/writ-status.js'
import { durationText, instantText } from '../duration-text.js'
import type { Reason } from '../explain.js'
import type { Rig } from './rig-report.js'

/** Everything that the reasons of a writ are taken from, read at one time. */
export interface WritFacts {
  readonly writ: WritDoc
  readonly now: At
  /** The oldest first. */
  readonly rigs: readonly Rig[]
  /** Where it stands in Spider's line; undefined: nowhere. */
  readonly dispatch: DispatchRow | undefined
  readonly outbound: readonly LinkDoc[]
  /** The writs that it waits for, by its line, its links or what Spider observed. */
  readonly blockerIds: readonly string[]
  /** Writs that reasons name. */
  readonly others: ReadonlyMap<string, WritDoc>
  /** Its children that have not ended, at most a hundred. */
  readonly openChildren: readonly WritDoc[]
  readonly requests: ReadonlyMap<string, InputRequestDoc>
  /** How many engines run in the whole guild. */
  readonly running: number
  readonly retry: RetryDescription
  /** Whether the guild retries by itself; undefined: nobody could say. */
  readonly observer: { readonly isThere: boolean; readonly behind: number; readonly holder: string | null } | undefined
  /** Why the work items of its running engines do not run, by engine. */
  readonly items: ReadonlyMap<string, { readonly id: string; readonly reason: Reason }>
}

/** A writ that came to a terminal phase has the time of it, whatever its type calls that phase. */
export function hasEnded({ resolvedAt }: WritDoc): boolean {
  return resolvedAt !== undefined
}

export function spiderStatus({ status }: WritDoc): SpiderWritStatus {
  const observed = status?.['spider']
  return typeof observed === 'object' && observed !== null ? observed : {}
}

/** ` since …, … ago` of a time as documents write it. */
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
