import { claimNames, labelName, metricName } from './prometheus-names.js'
import type { Labels, StatKind, StatSummary, StatValue } from './stat.js'

/** Options of {@link formatPrometheus}. */
export interface PrometheusOptions {
  /**
   * Ends the names of counters in `_total`, as Prometheus' own naming rules ask for; its linter then has no complaint about
   * described metrics. Default: false, names are those of the registry.
   */
  readonly totalSuffix?: boolean
}

interface Family {
  readonly raw: string
  readonly kind: StatKind
  readonly series: StatValue[]
}

const EMPTY: StatSummary = Object.freeze({ count: 0, total: 0, min: 0, max: 0, avg: 0 })

/**
 * The text exposition of a list of stats, as Prometheus scrapes it (`text/plain; version=0.0.4`).
 *
 * Whatever the names and labels are, the result is well formed: characters that Prometheus does not know become `_`, and
 * two names that would thereby become one are kept apart by a suffix. Summaries are written as histograms.
 *
 * @example
 * ```ts
 * formatPrometheus(metrics.list())
 * // # TYPE work_succeeded counter
 * // work_succeeded{type="email"} 12
 * ```
 */
export function formatPrometheus(stats: readonly StatValue[], options: PrometheusOptions = {}): string {
  const families = groupByFamily(stats)
  const wish = (family: Family): string => {
    const name = metricName(family.raw)
    return options.totalSuffix && family.kind === 'counter' && !name.endsWith('_total') ? `${name}_total` : name
  }
  const names = claimNames(families, { wish, raw: (f) => f.raw, claims: (f, name) => samplesOf(f.kind, name) })
  const lines = families.flatMap((family) => familyLines(family, names.get(family)!))
  // Prometheus refuses a last line that does not end.
  return lines.map((line) => `${line}\n`).join('')
}

function groupByFamily(stats: readonly StatValue[]): Family[] {
  const families = new Map<string, Family>()
  for (const stat of stats) {
    const { name, kind } = stat.meta
    const key = `${kind} ${name}`
    const family = families.get(key)
    if (family === undefined) families.set(key, { raw: name, kind, series: [stat] })
    else family.series.push(stat)
  }
  return [...families.values()]
}

/** Every name under which the samples of a family appear: no other family may have one of them. */
function samplesOf(kind: StatKind, name: string): readonly string[] {
  return kind === 'summary' ? [name, `${name}_bucket`, `${name}_count`, `${name}_sum`] : [name]
}

function familyLines(family: Family, name: string): string[] {
  const described = family.series.find((stat) => stat.meta.description)
  const help = described ? [`# HELP ${name} ${escapeHelp(described.meta.description!)}`] : []
  const type = `# TYPE ${name} ${family.kind === 'summary' ? 'histogram' : family.kind}`
  const keys = [...new Set(family.series.flatMap((stat) => Object.keys(stat.labels)))]
  // `le` belongs to the buckets of a histogram.
  const reserved = family.kind === 'summary' ? ['le'] : []
  const labels = claimNames(keys, { wish: labelName, raw: (key) => key, claims: (_, label) => [label], reserved })
  const samples = family.series.flatMap((stat) => {
    const pairs = labelPairs(stat.labels, labels)
    return family.kind === 'summary'
      ? histogramLines(name, pairs, stat.summary ?? EMPTY)
      : [sample(name, pairs, stat.value)]
  })
  return [...help, type, ...samples]
}

function histogramLines(name: string, pairs: readonly string[], summary: StatSummary): string[] {
  const finite = (summary.buckets ?? []).filter((bucket) => bucket.le !== Infinity)
  const buckets = [...finite, { le: Infinity, count: summary.count }]
  return [
    ...buckets.map(({ le, count }) => sample(`${name}_bucket`, [...pairs, `le="${number(le)}"`], count)),
    sample(`${name}_count`, pairs, summary.count),
    sample(`${name}_sum`, pairs, summary.total),
  ]
}

function labelPairs(labels: Labels, names: ReadonlyMap<string, string>): string[] {
  return Object.entries(labels).map(([key, value]) => `${names.get(key)!}="${escapeValue(String(value))}"`)
}

function sample(name: string, pairs: readonly string[], value: number): string {
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${number(value)}`
}

function number(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}

function escapeValue(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
