import type { Clock } from '../../time/clock.js'
import type { MaybePromise, Ms } from '../../time/time.js'
import { type RateLimitRule, type RateLimitState, returnPermits, takePermits } from './rate-limit.js'

/** How many permits a limiter granted, and when to ask for more. */
export interface Permits {
  readonly granted: number
  /** How long until there may be one more; 0 where all that were wanted were granted. */
  readonly retryAfterMs: Ms
  /** The window they belong to. */
  readonly windowAt: Ms
}

/** Buckets by key. */
export interface Limiter {
  take(key: string, rule: RateLimitRule, want: number): MaybePromise<Permits>
  /** Returns permits that were granted and not used. */
  giveBack(key: string, rule: RateLimitRule, unused: Pick<Permits, 'granted' | 'windowAt'>): MaybePromise<void>
}

const SWEEP_FROM = 1024

interface Bucket {
  readonly state: RateLimitState
  readonly staleAt: Ms
}

/** Buckets in this process. Those that no longer limit anything are forgotten, however many keys there ever were. */
export function localLimiter(clock: Clock, buckets = new Map<string, Bucket>()): Limiter {
  let sweepAt = SWEEP_FROM

  // A sweep each time the number of buckets has doubled costs O(1) per bucket made.
  function sweep(now: Ms): void {
    for (const [key, bucket] of buckets) if (bucket.staleAt <= now) buckets.delete(key)
    sweepAt = Math.max(SWEEP_FROM, 2 * buckets.size)
  }

  return {
    take(key, rule, want) {
      // Monotonic: no other process reads these buckets, and a wall clock that is set would stretch or empty them.
      const now = clock.monotonic()
      const { granted, retryAfterMs, state, staleAfterMs } = takePermits(rule, buckets.get(key)?.state, now, want)
      if (granted > 0) {
        buckets.set(key, { state, staleAt: now + staleAfterMs })
        if (buckets.size >= sweepAt) sweep(now)
      }
      return { granted, retryAfterMs, windowAt: state.at }
    },
    giveBack(key, rule, unused) {
      const bucket = buckets.get(key)
      if (bucket === undefined) return
      const state = returnPermits(rule, bucket.state, unused.granted, unused.windowAt)
      buckets.set(key, { ...bucket, state })
    },
  }
}
