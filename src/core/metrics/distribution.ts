import type { StatBucket, StatSummary } from './stat.js'

/** The histogram bounds of summaries when quantiles are asked for and no `buckets` are given: 1 ms to a minute. */
export const DEFAULT_BUCKETS: readonly number[] = Object.freeze([
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000,
])

/** What a summary remembers of everything it observed: a fixed handful of numbers, however many observations. */
export interface Distribution {
  count: number
  total: number
  min: number
  max: number
  /** Upper bounds, ascending; `undefined` where no buckets are kept. */
  readonly bounds: readonly number[] | undefined
  /** Observations per bucket, not cumulative; one more than `bounds`, for what lies above them all. */
  readonly counts: Float64Array
}

/** A distribution that has seen nothing. */
export function openDistribution(bounds: readonly number[] | undefined): Distribution {
  const counts = new Float64Array(bounds === undefined ? 0 : bounds.length + 1)
  return { count: 0, total: 0, min: 0, max: 0, bounds, counts }
}

/** Adds one observation. Allocates nothing: it runs several times for every item of work. */
export function observe(seen: Distribution, value: number): void {
  if (seen.count === 0) {
    seen.min = value
    seen.max = value
  } else if (value < seen.min) seen.min = value
  else if (value > seen.max) seen.max = value
  seen.count += 1
  seen.total += value
  const bounds = seen.bounds
  if (bounds === undefined) return
  let index = 0
  while (index < bounds.length && value > bounds[index]!) index += 1
  seen.counts[index]! += 1
}

/** What is known now, with one estimate per asked quantile where buckets are kept. */
export function snapshotOf(seen: Distribution, quantiles: readonly number[]): StatSummary {
  const { count, total, min, max, bounds } = seen
  const base = { count, total, min, max, avg: count === 0 ? 0 : total / count }
  if (bounds === undefined) return base
  const estimates: Record<string, number> = {}
  for (const q of quantiles) estimates[String(q)] = estimateQuantile(seen, bounds, q)
  return { ...base, buckets: cumulative(bounds, seen.counts), quantiles: estimates }
}

function cumulative(bounds: readonly number[], counts: Float64Array): StatBucket[] {
  let sum = 0
  return [...bounds, Infinity].map((le, index) => {
    sum += counts[index]!
    return { le, count: sum }
  })
}

/** Where the `q`-th part of the observations ends, taking them as spread evenly inside their bucket. */
function estimateQuantile(seen: Distribution, bounds: readonly number[], q: number): number {
  if (seen.count === 0) return 0
  const rank = q * seen.count
  let below = 0
  for (let index = 0; index < bounds.length; index += 1) {
    const inside = seen.counts[index]!
    if (inside > 0 && below + inside >= rank) {
      const upper = bounds[index]!
      // The first bucket has no lower bound: durations and counts begin at 0.
      const lower = index === 0 ? Math.min(0, upper) : bounds[index - 1]!
      return clamp(lower + (upper - lower) * ((rank - below) / inside), seen.min, seen.max)
    }
    below += inside
  }
  return seen.max
}

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(value, max))
}
