import { describe, expect, it } from 'vitest'
import { createMetrics } from '../../src/core/metrics/metrics.js'
import { WORK_METRICS } from '../../src/core/metrics/work-metrics.js'
import { adaptiveDelay } from '../../src/core/retry/adaptive-delay.js'

type Counts = Readonly<Record<string, readonly [succeeded: number, failed: number]>>

/** A context whose counters have the given totals. */
function at(counts: Counts) {
  const metrics = createMetrics()
  for (const [type, [succeeded, failed]] of Object.entries(counts)) {
    metrics.counter(WORK_METRICS.succeeded, { type }).inc(succeeded)
    metrics.counter(WORK_METRICS.failed, { type }).inc(failed)
  }
  return { metrics, active: 0 }
}

describe('a delay that follows failures', () => {
  // S124
  it('multiplies while work fails and shrinks by steps once it no longer does', () => {
    const delay = adaptiveDelay({ base: 100, factor: 2, step: 100, max: 1000 })
    const totals = [
      [0, 0],
      [0, 1],
      [0, 2],
      [0, 3],
      [1, 3],
      [2, 3],
      [3, 3],
      [4, 3],
    ] as const
    expect(totals.map((total) => delay(at({ a: total })))).toEqual([0, 100, 200, 400, 300, 200, 100, 0])
  })

  it('stays at 0 while nothing fails, and while nothing completes', () => {
    const delay = adaptiveDelay()
    expect([delay(at({ a: [0, 0] })), delay(at({ a: [5, 0] })), delay(at({ a: [5, 0] }))]).toEqual([0, 0, 0])
  })

  it('grows to max, from the defaults 100 and ×2 to 30 000', () => {
    const delay = adaptiveDelay()
    const delays = Array.from({ length: 12 }, (_, failed) => delay(at({ a: [0, failed] })))
    expect(delays).toEqual([0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  })

  it('never falls below min, and begins there', () => {
    const delay = adaptiveDelay({ min: 50, base: 100, step: 30 })
    const totals = [
      [0, 0],
      [0, 1],
      [1, 1],
      [2, 1],
      [3, 1],
    ] as const
    expect(totals.map((total) => delay(at({ a: total })))).toEqual([50, 100, 70, 50, 50])
  })

  it('leaves a failure rate up to maxFailRate alone', () => {
    const delay = adaptiveDelay({ maxFailRate: 0.5 })
    expect(delay(at({ a: [0, 0] }))).toBe(0)
    expect(delay(at({ a: [5, 5] }))).toBe(0)
    expect(delay(at({ a: [9, 10] }))).toBe(100)
  })

  it('watches all types together, or only those listed', () => {
    const all = adaptiveDelay()
    const some = adaptiveDelay({ types: ['watched', 'missing'] })
    const totals = [
      { watched: [0, 0], other: [0, 0] },
      { watched: [0, 0], other: [0, 9] },
      { watched: [0, 1], other: [0, 9] },
    ]
    expect(totals.map((total) => all(at(total as unknown as Counts)))).toEqual([0, 100, 200])
    expect(totals.map((total) => some(at(total as unknown as Counts)))).toEqual([0, 0, 100])
  })

  it('takes a registry with a history as it finds it, and one that was replaced as new', () => {
    const delay = adaptiveDelay()
    expect(delay(at({ a: [10, 500] }))).toBe(0)
    expect(delay(at({ a: [11, 500] }))).toBe(0)
    expect(delay(at({ a: [0, 3] }))).toBe(100)
  })

  it('asks a registry that cannot list by name, too', () => {
    const delay = adaptiveDelay()
    const { metrics } = at({ a: [0, 0] })
    const other = { metrics: { get: metrics.get, list: () => metrics.list() } }
    metrics.counter('another', { type: 'a' }).inc(1000)
    expect(delay(other)).toBe(0)
    metrics.counter(WORK_METRICS.failed, { type: 'a' }).inc()
    expect(delay(other)).toBe(100)
  })

  it('each has its own memory', () => {
    const [one, two] = [adaptiveDelay(), adaptiveDelay()]
    one(at({ a: [0, 0] }))
    expect(one(at({ a: [0, 1] }))).toBe(100)
    expect(two(at({ a: [0, 1] }))).toBe(0)
  })

  it('refuses bad options by name', () => {
    expect(() => adaptiveDelay({ maxFailRate: 2 })).toThrow(/adaptiveDelay\.maxFailRate/)
    expect(() => adaptiveDelay({ min: -1 })).toThrow(/adaptiveDelay\.min/)
    expect(() => adaptiveDelay({ min: 100, max: 50 })).toThrow(/adaptiveDelay\.max must be .*>= 100, got 50/)
    expect(() => adaptiveDelay({ base: 0 })).toThrow(/adaptiveDelay\.base/)
    expect(() => adaptiveDelay({ factor: 0.5 })).toThrow(/adaptiveDelay\.factor/)
    expect(() => adaptiveDelay({ step: Number.NaN })).toThrow(/adaptiveDelay\.step/)
    expect(() => adaptiveDelay({ types: 'a' as unknown as string[] })).toThrow(/adaptiveDelay\.types/)
    expect(() => adaptiveDelay({ faktor: 3 } as object)).toThrow(/Did you mean "factor"/)
  })
})
