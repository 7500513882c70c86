import type { WritDoc } from '../../clerk/writs/writ.js'

/** What Spider observes about a writ, flat under `writ.status.spider`. Its own file: readers outside of Spider load nothing else. */
export interface SpiderWritStatus {
  /**
   * Why the writ became stuck: an engine failed, a writ that it follows failed, it follows itself in a circle, or a watcher refused
   * to let the end of its rig be recorded.
   */
  readonly stuckCause?: 'engine-failure' | 'failed-blocker' | 'cycle' | 'refused'
  /** Whether a fresh attempt may succeed. Only on engine failures, and only until the next rig is spawned. */
  readonly retryable?: boolean
  /** In words: which engine, and what happened. */
  readonly detail?: string
  /** The writs that are in the way, of a gate. */
  readonly blockerIds?: readonly string[]
  /** ISO 8601. */
  readonly observedAt?: string
  /** The code of the error with which a watcher refused it. */
  readonly refusedBy?: string
  /** ISO 8601: the next rig begins no earlier, because what failed asked for that. */
  readonly retryAt?: string
  /** The rig that it is stuck by. */
  readonly rigId?: string
}

/** What Spider has stored about a writ; empty where it has stored nothing, or a plugin has written something else there. */
export function spiderStatusOf({ status }: Pick<WritDoc, 'status'>): SpiderWritStatus {
  const observed = status?.['spider']
  return typeof observed === 'object' && observed !== null ? observed : {}
}
