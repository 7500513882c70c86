import { MillraceError } from '../error.js'
import { functionOption, numberOption, OptionTypeError } from '../options.js'
import { callable, listener, optional, readOptions } from '../read-options.js'
import { describeValue } from '../text/describe-value.js'
import { changeFeed } from './change-feed.js'
import { DEFAULT_BUCKETS, openDistribution } from './distribution.js'
import { type Counter, type Gauge, openCounter, openGauge, openSummary, type Summary } from './instruments.js'
import { findSeries, type LabelNode, labelNode, seriesAt } from './label-tree.js'
import type { Labels, StatKind, StatMeta, StatValue } from './stat.js'

/** What a metric may say about itself when it is created; of each part the first to be given stays. */
export type StatDetails = Pick<StatMeta, 'description' | 'unit'>

/** Options of {@link createMetrics}. */
export interface MetricsOptions {
  /**
   * Upper bounds of the histogram buckets of every summary, ascending.
   * Default: none, or `DEFAULT_BUCKETS` where `quantiles` are asked for.
   */
  readonly buckets?: readonly number[]
  /** Quantiles to estimate for every summary, each between 0 and 1: `[0.5, 0.99]`. Default: none. */
  readonly quantiles?: readonly number[]
  /** When to notify subscribers: called with a function to call once, later. Default: `queueMicrotask`. */
  readonly schedule?: (flush: () => void) => void
  /** Called with what a subscriber threw. Default: ignored; a broken subscriber disturbs neither the others nor the work. */
  readonly onError?: (error: unknown) => void
}

/** A registry of metrics. All its methods work when detached from it. */
export interface Metrics {
  /** The counter of that name and those labels, created on first use. Throws where the name is another kind of metric. */
  counter(name: string, labels?: Labels, details?: StatDetails): Counter
  /** The gauge of that name and those labels, likewise. */
  gauge(name: string, labels?: Labels, details?: StatDetails): Gauge
  /** The summary of that name and those labels, likewise. */
  summary(name: string, labels?: Labels, details?: StatDetails): Summary
  /** Every series (or those of one metric) as it stands, metric by metric, in the order of creation. */
  list(name?: string): StatValue[]
  get(name: string, labels?: Labels): StatValue | undefined
  /**
   * Calls `listener` with the series that changed, once per batch however often each one changed. Returns an unsubscribe.
   * A listener that changes a metric causes a further batch. Without subscribers there is no bookkeeping.
   */
  subscribe(listener: (changed: readonly StatValue[]) => void): () => void
}

type Instrument = Counter | Gauge | Summary

interface Series {
  readonly instrument: Instrument
  readonly read: () => StatValue
  isChanged: boolean
}

interface Family {
  meta: StatMeta
  readonly root: LabelNode<Series>
  readonly series: Series[]
}

const NO_LABELS: Labels = Object.freeze({})

/**
 * Makes a registry of labelled counters, gauges and summaries: read it with `list()`, follow it with `subscribe()`, or hand
 * the list to `formatPrometheus`.
 *
 * @example
 * ```ts
 * const metrics = createMetrics({ quantiles: [0.5, 0.99] })
 * const took = metrics.summary('mail.took', { type: 'welcome' }, { unit: 'ms' })
 * took.observe(42)
 * metrics.get('mail.took', { type: 'welcome' })?.summary?.quantiles // { '0.5': 42, '0.99': 42 }
 * ```
 */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const { bounds, quantiles, schedule, onError } = resolveMetricsOptions(options)
  const families = new Map<string, Family>()
  const feed = changeFeed<Series, StatValue>({ read: (series) => series.read(), schedule, onError })

  function open(family: Family, labels: Labels): Series {
    const { name, kind } = family.meta
    const touch = (): void => {
      if (feed.isHeard && !series.isChanged) feed.changed(series)
    }
    const make = (): Pick<Series, 'instrument' | 'read'> => {
      switch (kind) {
        case 'counter':
        case 'gauge': {
          const instrument = kind === 'counter' ? openCounter(name, touch) : openGauge(name, touch)
          return { instrument, read: () => ({ meta: family.meta, labels, value: instrument.value() }) }
        }
        case 'summary': {
          const instrument = openSummary(name, touch, openDistribution(bounds), quantiles)
          const read = (): StatValue => {
            const summary = instrument.snapshot()
            return { meta: family.meta, labels, value: summary.count, summary }
          }
          return { instrument, read }
        }
      }
    }
    const series: Series = { ...make(), isChanged: false }
    family.series.push(series)
    return series
  }

  function instrumentOf(kind: StatKind, name: string, labels: Labels, details?: StatDetails): Instrument {
    let family = families.get(name)
    if (family === undefined) {
      if (typeof name !== 'string' || name === '') throw badName(name)
      family = { meta: Object.freeze({ name, kind }), root: labelNode(), series: [] }
      families.set(name, family)
    }
    if (family.meta.kind !== kind) throw kindClash(name, family.meta.kind, kind)
    if (details !== undefined) family.meta = described(family.meta, details)
    const home = family
    return seriesAt(home.root, labels, (copy) => open(home, copy)).instrument
  }

  return {
    counter: (name, labels = NO_LABELS, details) => instrumentOf('counter', name, labels, details) as Counter,
    gauge: (name, labels = NO_LABELS, details) => instrumentOf('gauge', name, labels, details) as Gauge,
    summary: (name, labels = NO_LABELS, details) => instrumentOf('summary', name, labels, details) as Summary,
    list(name) {
      const chosen = name === undefined ? [...families.values()] : [families.get(name)]
      return chosen.flatMap((family) => family?.series.map((series) => series.read()) ?? [])
    },
    get(name, labels = NO_LABELS) {
      const family = families.get(name)
      return family && findSeries(family.root, labels)?.read()
    },
    subscribe: (listener) => feed.subscribe(functionOption('metrics.subscribe(listener)', listener)),
  }
}

function described(meta: StatMeta, { description, unit }: StatDetails): StatMeta {
  const addsDescription = meta.description === undefined && description !== undefined
  const addsUnit = meta.unit === undefined && unit !== undefined
  if (!addsDescription && !addsUnit) return meta
  return Object.freeze({ ...meta, ...(addsDescription && { description }), ...(addsUnit && { unit }) })
}

function resolveMetricsOptions(options: MetricsOptions) {
  const { buckets, quantiles, schedule, onError } = readOptions('createMetrics', options, {
    buckets: optional(bucketsOption),
    quantiles: quantilesOption,
    schedule: callable<(flush: () => void) => void>(queueMicrotask),
    onError: listener,
  })
  const bounds = buckets ?? (quantiles.length > 0 ? DEFAULT_BUCKETS : undefined)
  return { bounds, quantiles, schedule, onError }
}

function quantilesOption(path: string, quantiles: unknown = []): readonly number[] {
  if (!Array.isArray(quantiles)) throw new OptionTypeError(path, 'an array of numbers', quantiles)
  return quantiles.map((q, index) => numberOption(`${path}[${index}]`, q, { min: 0, max: 1 }))
}

function bucketsOption(path: string, buckets: unknown): readonly number[] {
  if (!Array.isArray(buckets)) throw new OptionTypeError(path, 'an array of numbers', buckets)
  let last = -Infinity
  for (const [index, bound] of buckets.entries())
    last = numberOption(`${path}[${index}]`, bound, { above: last, infinite: true })
  // The overflow bucket is always there; a bound of Infinity would only repeat it.
  return buckets.filter((bound) => bound !== Infinity)
}

function badName(name: unknown): MillraceError {
  return new MillraceError('METRIC_NAME', `A metric needs a non-empty string as its name; got ${describeValue(name)}.`)
}

function kindClash(name: string, is: StatKind, asked: StatKind): MillraceError {
  return new MillraceError('METRIC_KIND', `metric "${name}" already exists as a ${is}, not a ${asked}`, {
    facts: { name, is, asked },
  })
}
