import type { PlaceKind } from '../contenders/contender.js'
import type { Measure } from './figures.js'

export interface Bar {
  /** Ours must not be worse than this, as a ratio of ours to the best peer's. */
  readonly floor: number
  readonly goal: number
}

/**
 * The floors and goals of speed, each a ratio of ours to the best peer on the same ground in the same run; for a rate at least this, for
 * a time at most. Ours runs with all of its guarantees and default options, a peer with its fastest documented settings. What is not
 * listed is measured and shown, and nothing is promised of it.
 */
export const BARS: Readonly<Record<PlaceKind, Readonly<Partial<Record<Measure, Bar>>>>> = {
  // Against a queue of thirty lines that keeps ids and outcomes and promises nothing else.
  memory: { drain: { floor: 0.1, goal: 0.25 } },
  sqlite: {
    drain: { floor: 4, goal: 10 },
    callers: { floor: 2, goal: 4 },
    bulk: { floor: 0.5, goal: 1 },
  },
  redis: {
    drain: { floor: 3, goal: 6 },
    callers: { floor: 1.5, goal: 3 },
    bulk: { floor: 3, goal: 8 },
    'idle p50': { floor: 1, goal: 0.5 },
    'p99 at 500/s': { floor: 1, goal: 0.5 },
  },
  postgres: {
    drain: { floor: 1, goal: 2 },
    callers: { floor: 10, goal: 25 },
    bulk: { floor: 1.2, goal: 2 },
    'idle p50': { floor: 1, goal: 0.5 },
    'p99 at 500/s': { floor: 1, goal: 0.5 },
  },
}
