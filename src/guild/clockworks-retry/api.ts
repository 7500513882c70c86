/** What was decided about a writ. */
export type RetryDecision = 'requeue' | 'leave'

/** What Clockworks-Retry makes of a writ as it is now, and why. */
export interface RetryDescription {
  readonly writId: string
  /** How many rigs the writ has had. */
  readonly attempts: number
  /** How many it may have. */
  readonly cap: number
  readonly decision: RetryDecision
  /** In words. */
  readonly reason: string
}

/** It works by itself; there is little to ask it. */
export interface ClockworksRetryApi {
  /** How many attempts (rigs) a writ may have. */
  readonly maxAttempts: number
  /** What it would do about this writ if it became stuck as it is now, and why. Rejects when there is none. */
  describe(writId: string): Promise<RetryDescription>
}
