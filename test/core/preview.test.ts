import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { preview } from '../../src/core/retry/preview.js'
import { setDefaultRetryOptions } from '../../src/core/retry/retry-defaults.js'

afterEach(() => setDefaultRetryOptions())

const ranges = (rows: ReturnType<typeof preview>) =>
  rows.map((row) => [row.attempt, row.sinceStartMs.minMs, row.sinceStartMs.maxMs])

describe('the preview of a policy', () => {
  it('lists every attempt of work with its range', () => {
    expect(preview()).toEqual([
      { attempt: 1, waitMs: { minMs: 0, maxMs: 0 }, sinceStartMs: { minMs: 0, maxMs: 0 } },
      { attempt: 2, waitMs: { minMs: 500, maxMs: 1000 }, sinceStartMs: { minMs: 500, maxMs: 1000 } },
      { attempt: 3, waitMs: { minMs: 1000, maxMs: 2000 }, sinceStartMs: { minMs: 1500, maxMs: 3000 } },
    ])
    expect(ranges(preview({ attempts: 4, base: 100, jitter: 0 }))).toEqual([
      [1, 0, 0],
      [2, 100, 100],
      [3, 300, 300],
      [4, 700, 700],
    ])
  })

  it('lists every delivery of a stream', () => {
    expect(ranges(preview({ maxAttempts: 5 }))).toEqual([
      [1, 0, 0],
      [2, 0, 100],
      [3, 0, 300],
      [4, 0, 700],
      [5, 0, 1500],
    ])
    expect(ranges(preview({ backoff: (attempt) => attempt * 1000, maxAttempts: 3 }))).toEqual([
      [1, 0, 0],
      [2, 1000, 1000],
      [3, 3000, 3000],
    ])
  })

  it('is one draw when chance is given, and has instants when the start is', () => {
    const rows = preview({ attempts: 2 }, { random: () => 0.5, startAt: 10_000 })
    expect(rows[1]).toEqual({
      attempt: 2,
      waitMs: { minMs: 750, maxMs: 750 },
      sinceStartMs: { minMs: 750, maxMs: 750 },
      earliestAt: 10_750,
      latestAt: 10_750,
    })
    expect(preview({ maxAttempts: 2 }, { random: () => 0.25 })[1]?.waitMs).toEqual({ minMs: 25, maxMs: 25 })
  })

  it('follows the process-wide defaults', () => {
    setDefaultRetryOptions({ attempts: 1 })
    expect(preview()).toHaveLength(1)
  })

  it('ends, though the policy does not', () => {
    expect(preview({ attempts: Infinity })).toHaveLength(100)
    expect(preview({ maxAttempts: Infinity }, { limit: 7 })).toHaveLength(7)
  })

  it('names a bad option', () => {
    expect(() => preview({ attempts: 0 })).toThrow('policy.attempts must be an integer >= 1, got 0')
    expect(() => preview({ maxAttempts: 0 })).toThrow('policy.maxAttempts')
    expect(() => preview({ attemps: 3 } as never)).toThrow('Did you mean "attempts"?')
    expect(() => preview({ backoff: { baseMs: 0 } })).toThrow('policy.backoff.baseMs')
    expect(() => preview({}, { limit: 0 })).toThrow('preview.limit')
    expect(() => preview({}, { random: 5 as never })).toThrow('preview.random must be a function')
    expect(() => preview({}, { startAt: Number.NaN })).toThrow('preview.startAt')
    expect(() => preview(null as never)).toThrow('policy must be an object of options, got null')
  })

  it('never runs backwards, and bad policies get errors that say so', () => {
    const value = fc.oneof(fc.double(), fc.integer({ min: 0, max: 100 }), fc.anything())
    const policy = fc.oneof(
      fc.record({ attempts: value, base: value, factor: value, max: value, jitter: value }, { requiredKeys: [] }),
      fc.record({ maxAttempts: value, backoff: value }, { requiredKeys: [] }),
    )
    fc.assert(
      fc.property(policy, (given) => {
        try {
          const rows = preview(given as never, { limit: 20 })
          rows.forEach((row, i) => {
            expect(row.sinceStartMs.minMs).toBeLessThanOrEqual(row.sinceStartMs.maxMs)
            if (i > 0) expect(row.sinceStartMs.minMs).toBeGreaterThanOrEqual(rows[i - 1]!.sinceStartMs.minMs)
          })
        } catch (error) {
          expect(error).toHaveProperty('code', 'BAD_OPTION')
          expect((error as Error).message).toContain('policy')
        }
      }),
      { numRuns: 1000 },
    )
  })
})
