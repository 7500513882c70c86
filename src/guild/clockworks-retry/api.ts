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
}

/** Clockworks-Retry works by itself; this only describes what it does. */
export interface ClockworksRetryApi {
  /** How many attempts (rigs) a writ may have. */
  readonly maxAttempts: number
  /** What it would do about this writ if it became stuck as it is now, and why. Rejects when there is none. */
  describe(writId: string): Promise<RetryDescription>
}
