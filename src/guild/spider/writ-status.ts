/**
 * What Spider observes about a writ, flat under `writ.status.spider`. Its own file, because readers such as Clockworks-Retry share
 * the type and none of the code.
 */
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
