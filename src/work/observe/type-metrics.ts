import type { Counter, Gauge, Summary } from '../../core/metrics/instruments.js'
import type { Metrics } from '../../core/metrics/metrics.js'
import { WORK_METRIC_DETAILS, WORK_METRICS, type WorkMetric } from '../../core/metrics/work-metrics.js'

type MeterOf<K extends WorkMetric> = K extends
  | 'waitTime'
  | 'totalTime'
  | 'successTime'
  | 'errorTime'
  | 'delayTime'
  | 'rescheduleTime'
  | 'attempts'
  ? Summary
  : K extends 'active' | 'pending' | 'running' | 'peak' | 'lastQueued' | 'lastStarted' | 'lastSucceeded' | 'lastFailed'
    ? Gauge
    : Counter

/** All series of one work type, kept, so that counting needs no lookup. */
export type TypeMeters = { readonly [K in Exclude<WorkMetric, 'queueDepth' | 'removed'>]: MeterOf<K> }

/** The series of every type. A type's appear together on its first item, at 0. */
export class TypeMetrics {
  readonly #metrics: Metrics
  readonly #types = new Map<string, TypeMeters>()

  constructor(metrics: Metrics) {
    this.#metrics = metrics
  }

  of(type: string): TypeMeters {
    let meters = this.#types.get(type)
    if (meters === undefined) {
      meters = this.#open(type)
      this.#types.set(type, meters)
    }
    return meters
  }

  /** Ended items that are gone, whatever their type: made when there is something to count. */
  removed(count: number): void {
    const { description, unit } = WORK_METRIC_DETAILS.removed
    this.#metrics.counter(WORK_METRICS.removed, {}, { description, unit }).inc(count)
  }

  #open(type: string): TypeMeters {
    const labels = { type }
    const names = (Object.keys(WORK_METRICS) as WorkMetric[]).filter(
      (name) => name !== 'queueDepth' && name !== 'removed',
    )
    const made = names.map((name) => {
      const { kind, description, unit } = WORK_METRIC_DETAILS[name]
      return [name, this.#metrics[kind](WORK_METRICS[name], labels, { description, unit })]
    })
    return Object.fromEntries(made) as TypeMeters // One entry per name above, of the kind that its details say.
  }
}
