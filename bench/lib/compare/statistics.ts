/** The middle of some figures with the least and the most of them. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('the median of nothing')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** The value that this share of the values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error('a percentile of nothing')
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!
}

/** Each of `ours` divided by the figure of the same round: what slows the machine down for a minute slows both. */
export function pairedRatios(ours: readonly number[], theirs: readonly number[]): number[] {
  if (ours.length !== theirs.length) {
    throw new Error(`${ours.length} rounds of ours cannot be paired with ${theirs.length} of theirs`)
  }
  return ours.map((value, round) => value / theirs[round]!)
}
