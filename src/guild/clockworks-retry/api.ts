/** What was decided about a writ. */
export type RequeueDecision = 'requeue' | 'leave'

/** What Clockworks-Retry decides about a writ as it is now, and why. */
export interface RetryDescription {
  readonly writId: string
  /** How many rigs the writ has had. */
  readonly attempts: number
  /** How many it may have. */
  readonly cap: number
  readonly decision: RequeueDecision
  /** In words. */
  readonly reason: string
  /**
   * The pause before its next rig that the policy asks for. Absent: none. The writ may wait for longer: until its own `runAt`, or
   * until the time that what failed asked for (`status.spider.retryAt`).
   */
  readonly delayMs?: number
}

/** Clockworks-Retry works by itself; this only describes what it does. */
export interface ClockworksRetryApi {
  /**
   * How many rigs a writ may have, where its type has no number of its own: `maxRigs` of the configuration.
   * @deprecated Read `maxRigsOf(type)`: elsewhere the word counts something else.
   */
  readonly maxAttempts: number
  /** How many rigs a writ of this type may have. */
  maxRigsOf(type: string): number
  /** What it would do about this writ if it became stuck as it is now, and why. Rejects when there is none. */
  describe(writId: string): Promise<RetryDescription>
}
