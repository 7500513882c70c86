import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  RATE_LIMIT_ALGORITHMS,
  type RateLimitAlgorithm,
  type RateLimitRule,
  type RateLimitState,
  returnPermits,
  takePermits,
} from '../../../src/core/doer/rate/rate-limit.js'

/** One bucket that remembers; asks as if at the given time. */
function bucket(rule: RateLimitRule, startState?: RateLimitState) {
  let state = startState
  return (now: number, want = 1) => {
    const answer = takePermits(rule, state, now, want)
    if (answer.granted > 0) state = answer.state
    return answer
  }
}

const rule = (algorithm: RateLimitAlgorithm, limit: number, window: number): RateLimitRule => ({
  algorithm,
  limit,
  window,
})

describe('a fixed window', () => {
  it('begins with the first start and lets limit through', () => {
    const take = bucket(rule('fixed-window', 2, 100))
    expect([take(1030).granted, take(1090).granted]).toEqual([1, 1])
    expect(take(1129)).toMatchObject({ granted: 0, retryAfterMs: 1 })
    expect(take(1130)).toMatchObject({ granted: 1, retryAfterMs: 0, state: { at: 1130, used: 1 } })
  })

  it('grants a part of what is wanted, and says when the rest may come', () => {
    const take = bucket(rule('fixed-window', 5, 100))
    expect(take(0, 8)).toMatchObject({ granted: 5, retryAfterMs: 100, staleAfterMs: 100 })
  })
})

describe('a sliding window', () => {
  it('counts the window before, less as this one goes on', () => {
    const take = bucket(rule('sliding-window', 10, 100))
    expect(take(90, 10).granted).toBe(10)
    // At 150 half of the ten still count.
    expect(take(150, 10)).toMatchObject({ granted: 5 })
    expect(take(159.9).granted).toBe(0)
    expect(take(160).granted).toBe(1)
  })

  it('forgets what is two windows old', () => {
    const take = bucket(rule('sliding-window', 3, 100))
    expect(take(0, 3).granted).toBe(3)
    expect(take(200, 3).granted).toBe(3)
  })
})

describe('a token bucket', () => {
  it('lets a burst of limit through and then refills evenly', () => {
    const take = bucket(rule('token-bucket', 4, 100))
    expect(take(0, 9)).toMatchObject({ granted: 4, retryAfterMs: 25 })
    expect(take(24.9).granted).toBe(0)
    expect(take(25).granted).toBe(1)
    expect(take(100, 9).granted).toBe(3)
    expect(take(10_000, 9).granted).toBe(4)
  })
})

const algorithm = fc.constantFrom(...RATE_LIMIT_ALGORITHMS)
const rules = fc.record({
  algorithm,
  limit: fc.integer({ min: 1, max: 20 }),
  window: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.double({ min: 0.5, max: 1e5, noNaN: true })),
})
const steps = fc.array(fc.tuple(fc.double({ min: 0, max: 2, noNaN: true }), fc.integer({ min: 1, max: 30 })), {
  maxLength: 40,
})

describe.each(RATE_LIMIT_ALGORITHMS)('whatever the traffic, %s', (algorithm) => {
  it('refuses for exactly as long as it says', () => {
    fc.assert(
      fc.property(rules, steps, (any, traffic) => {
        const rule = { ...any, algorithm }
        let now = 1_000_000
        let state: RateLimitState | undefined
        // Asserted once for each case: `expect` itself took most of the time of this test.
        const mistakes: object[] = []
        for (const [wait, want] of traffic) {
          now += wait * rule.window
          const answer = takePermits(rule, state, now, want)
          const isWithin = answer.granted <= Math.min(want, rule.limit)
          if (!isWithin || answer.retryAfterMs > 0 !== answer.granted < want) mistakes.push({ now, want, answer })
          if (answer.granted > 0) state = answer.state
          if (answer.granted === want) continue
          const { retryAfterMs } = answer
          const then = takePermits(rule, state, now + retryAfterMs, 1)
          if (then.granted !== 1) mistakes.push({ now, retryAfterMs, then })
          if (!(retryAfterMs > 1)) continue
          const before = takePermits(rule, state, now + retryAfterMs * 0.99 - 0.5, 1)
          if (before.granted !== 0) mistakes.push({ now, retryAfterMs, before })
        }
        expect(mistakes).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  it('never lets more through than its definition allows', () => {
    fc.assert(
      fc.property(rules, steps, (any, traffic) => {
        const rule = { ...any, algorithm }
        const { limit, window } = rule
        const take = bucket(rule)
        const starts: number[] = []
        let now = 1_000_000
        for (const [wait, want] of traffic) {
          now += wait * window
          const { granted } = take(now, want)
          for (let n = 0; n < granted; n += 1) starts.push(now)
        }
        const isAllowed = (count: number, span: number) => {
          // In any stretch of time: so many windows begin in it, or so many tokens are refilled.
          const windows = Math.floor(span / window + 1e-9) + 2
          return count <= (algorithm === 'token-bucket' ? limit + (limit * span) / window : limit * windows) + 1e-3
        }
        const excess = starts.flatMap((from, first) =>
          starts.slice(first).filter((to, more) => !isAllowed(more + 1, to - from)),
        )
        expect(excess).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  it('a state is worth nothing after staleAfterMs', () => {
    fc.assert(
      fc.property(rules, steps, fc.integer({ min: 1, max: 30 }), (any, traffic, want) => {
        const rule = { ...any, algorithm }
        let now = 1_000_000
        let state: RateLimitState | undefined
        let staleAt = now
        for (const [wait, ask] of traffic) {
          now += wait * rule.window
          const answer = takePermits(rule, state, now, ask)
          if (answer.granted === 0) continue
          state = answer.state
          staleAt = now + answer.staleAfterMs
        }
        const later = Math.max(now, staleAt)
        expect(takePermits(rule, state, later, want).granted).toBe(takePermits(rule, undefined, later, want).granted)
      }),
      { numRuns: 1000 },
    )
  })

  it('permits that come back in their window are there again', () => {
    const one = rule(algorithm, 3, 100)
    const { state } = takePermits(one, undefined, 1000, 3)
    expect(takePermits(one, state, 1000, 1).granted).toBe(0)
    expect(takePermits(one, returnPermits(one, state, 2, state.at), 1000, 3).granted).toBe(2)
  })

  it('a clock that was set far back does not close it for ages; one a little ahead only delays', () => {
    const one = rule(algorithm, 1, 100)
    const { state } = takePermits(one, undefined, 1_000_000, 1)
    expect(takePermits(one, state, 500_000, 1).granted).toBe(1)
    const answer = takePermits(one, state, 1_000_000 - 60, 1)
    expect(answer.granted).toBe(0)
    expect(answer.retryAfterMs).toBeLessThanOrEqual(360)
    expect(takePermits(one, state, 1_000_000 - 60 + answer.retryAfterMs, 1).granted).toBe(1)
  })
})

describe('permits of a window that is over', () => {
  it('are not put into the next one', () => {
    const one = rule('fixed-window', 3, 100)
    const { state } = takePermits(one, undefined, 2000, 2)
    expect(returnPermits(one, state, 2, 1000)).toBe(state)
    const bucket = takePermits(rule('token-bucket', 3, 100), undefined, 2000, 2)
    expect(returnPermits(rule('token-bucket', 3, 100), bucket.state, 2, 1000).used).toBe(0)
  })
})
