/** What distinguishes the series of one metric: `{ type: 'email' }`. The order of the keys does not matter. */
export type Labels = Readonly<Record<string, string>>

/** A counter only rises, a gauge goes up and down, a summary describes the distribution of what it observed. */
export type StatKind = 'counter' | 'gauge' | 'summary'

/** What is known of a metric, the same for all its series. */
export interface StatMeta {
  readonly name: string
  readonly kind: StatKind
  readonly description?: string
  /** The unit of the values: `ms`, `count`, `bytes`. */
  readonly unit?: string
}

/** How many observations were at most `le`; cumulative, so that each bucket includes those before it. */
export interface StatBucket {
  readonly le: number
  readonly count: number
}

/** The distribution of what a summary observed. All zero while there is nothing. */
export interface StatSummary {
  readonly count: number
  readonly total: number
  readonly min: number
  readonly max: number
  readonly avg: number
  /** Only with `buckets` or `quantiles` configured; the last one has `le: Infinity`. */
  readonly buckets?: readonly StatBucket[]
  /** Estimated from the buckets, keyed by `String(q)`. Only with `buckets` or `quantiles` configured. */
  readonly quantiles?: Readonly<Record<string, number>>
}

/** One series at one moment. */
export interface StatValue {
  readonly meta: StatMeta
  readonly labels: Labels
  /** The value of a counter or gauge; of a summary, how many observations it made. */
  readonly value: number
  /** Present for summaries. */
  readonly summary?: StatSummary
}
