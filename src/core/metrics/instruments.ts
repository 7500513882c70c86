import { MillraceError } from '../error.js'
import { describeValue } from '../text/describe-value.js'
import { type Distribution, observe, snapshotOf } from './distribution.js'
import type { StatKind, StatSummary } from './stat.js'

/** A series that only rises. Hold on to it where it is used often: a hit costs a few nanoseconds and allocates nothing. */
export interface Counter {
  /** Adds `by` (default 1), which must not be negative. */
  inc(by?: number): void
  value(): number
}

/** A series that goes up and down. */
export interface Gauge {
  set(value: number): void
  /** Adds `by`, which may be negative. */
  add(by: number): void
  /** Raises the gauge to `value`; never lowers it. */
  max(value: number): void
  value(): number
}

/** A series of observations. */
export interface Summary {
  observe(value: number): void
  snapshot(): StatSummary
}

// The number lives in a typed array: it is updated in place, while a captured variable, or a field of a shape that other
// code has too, would get a newly allocated number on every hit.

/** A counter at 0; `touch` is called after every change. */
export function openCounter(name: string, touch: () => void): Counter {
  const cell = new Float64Array(1)
  return {
    inc(by = 1) {
      if (typeof by !== 'number' || !(by >= 0)) throw badValue('counter', name, by)
      cell[0]! += by
      touch()
    },
    value: () => cell[0]!,
  }
}

/** A gauge at 0; `touch` is called after every change. */
export function openGauge(name: string, touch: () => void): Gauge {
  const cell = new Float64Array(1)
  const put = (value: number): void => {
    if (typeof value !== 'number') throw badValue('gauge', name, value)
    cell[0] = value
    touch()
  }
  return {
    set: put,
    add: (by) => put(cell[0]! + by),
    max(value) {
      if (value > cell[0]!) put(value)
    },
    value: () => cell[0]!,
  }
}

/** A summary over `seen`; `touch` is called after every observation. */
export function openSummary(
  name: string,
  touch: () => void,
  seen: Distribution,
  quantiles: readonly number[],
): Summary {
  return {
    observe(value) {
      if (typeof value !== 'number' || Number.isNaN(value)) throw badValue('summary', name, value)
      observe(seen, value)
      touch()
    },
    snapshot: () => snapshotOf(seen, quantiles),
  }
}

const TAKES: Readonly<Record<StatKind, string>> = {
  counter: 'a number of at least 0; use a gauge for what can fall',
  gauge: 'a number',
  summary: 'a number that is not NaN',
}

function badValue(kind: StatKind, name: string, value: unknown): MillraceError {
  return new MillraceError('METRIC_VALUE', `${kind} "${name}" takes ${TAKES[kind]}; got ${describeValue(value)}.`, {
    facts: { name, kind },
  })
}
