import type { WritDoc } from '../../clerk/writs/writ.js'

/** What Spider observes about a writ, flat under `writ.status.spider`. Its own file: readers outside of Spider load nothing else. */
export interface SpiderWritStatus {
  /** Why the writ became stuck: an engine failed, a writ that it follows failed, or it follows itself in a circle. */
  readonly stuckCause?: 'engine-failure' | 'failed-blocker' | 'cycle'
  /** Whether a fresh attempt may succeed. Only on engine failures, and only until the next rig is spawned. */
  readonly retryable?: boolean
  /** In words: which engine, and what happened. */
  readonly detail?: string
  /** The writs that are in the way, of a gate. */
  readonly blockerIds?: readonly string[]
  /** ISO 8601. */
  readonly observedAt?: string
  /** The rig whose engine failed. */
  readonly rigId?: string
}

/** What Spider has stored about a writ; empty where it has stored nothing, or a plugin has written something else there. */
export function spiderStatusOf({ status }: Pick<WritDoc, 'status'>): SpiderWritStatus {
  const observed = status?.['spider']
  return typeof observed === 'object' && observed !== null ? observed : {}
}
