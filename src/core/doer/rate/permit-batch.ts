import type { Ms } from '../../time/time.js'
import type { Limiter, Permits } from './limiter.js'
import type { RateLimitRule } from './rate-limit.js'

/** One bucket of one limiter. */
export interface RateBucket {
  /** Distinguishes it from every other bucket; made once, because it is asked for on every task. */
  readonly id: string
  readonly limiter: Limiter
  readonly key: string
  readonly rule: RateLimitRule
}

interface Held {
  readonly bucket: RateBucket
  readonly windowAt: Ms
  /** Permits in hand. */
  left: number
  /** Set where the bucket gave less than was wanted: asking again in this round is in vain. */
  readonly emptyForMs: Ms | undefined
}

/**
 * The permits of one round. They are fetched for many tasks at a time, because a store is a round trip away, and what a
 * round did not use goes back at its end.
 */
export class PermitBatch {
  readonly #held = new Map<string, Held>()

  /** Spends one permit, fetching up to `want` where there is none in hand. `undefined`: spent; otherwise: not for so long. */
  async spend(bucket: RateBucket, want: number): Promise<Ms | undefined> {
    const held = this.#held.get(bucket.id)
    if (held !== undefined && held.left > 0) {
      held.left -= 1
      return undefined
    }
    if (held?.emptyForMs !== undefined) return held.emptyForMs
    const permits: Permits = await bucket.limiter.take(bucket.key, bucket.rule, want)
    const { granted, retryAfterMs, windowAt } = permits
    const emptyForMs = granted < want ? retryAfterMs : undefined
    this.#held.set(bucket.id, { bucket, windowAt, left: Math.max(0, granted - 1), emptyForMs })
    return granted > 0 ? undefined : retryAfterMs
  }

  /** Takes back a permit that was just spent at `bucket`. */
  unspend(bucket: RateBucket): void {
    this.#held.get(bucket.id)!.left += 1
  }

  /** Returns what is left to its buckets. */
  async close(): Promise<void> {
    for (const { bucket, left, windowAt } of this.#held.values())
      if (left > 0) await bucket.limiter.giveBack(bucket.key, bucket.rule, { granted: left, windowAt })
  }
}

/** One limit on one key. Two limits on one key are two buckets. */
export function gateTo(limiter: Limiter, key: string, rule: RateLimitRule): RateBucket {
  return { id: `${rule.limit} ${rule.window} ${rule.algorithm} ${key}`, limiter, key, rule }
}
