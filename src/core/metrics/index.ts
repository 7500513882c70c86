/** Metrics: what work systems record, a registry of your own, and the Prometheus text format. */
export { DEFAULT_BUCKETS } from './distribution.js'
export type { Counter, Gauge, Summary } from './instruments.js'
export { createMetrics, type Metrics, type MetricsOptions, type StatDetails } from './metrics.js'
export { formatPrometheus, type PrometheusOptions } from './prometheus.js'
export type { Labels, StatBucket, StatKind, StatMeta, StatSummary, StatValue } from './stat.js'
export { WORK_METRIC_DETAILS, WORK_METRICS, type WorkMetric } from './work-metrics.js'
