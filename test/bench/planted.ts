import type { Figures, Row } from '../../bench/lib/compare/figures.js'

/** One row of Redis drain rates: ours, and a peer's. */
export function drainRow(ours: readonly number[], theirs: readonly number[]): Row {
  return {
    kind: 'redis',
    measure: 'drain',
    unit: '/s',
    ours: { name: 'millrace', values: ours },
    peers: [{ name: 'bullmq', values: theirs }],
  }
}

/** A run with these rows, and nothing wrong beside them. */
export function figuresOf(rows: readonly Row[], others: Partial<Figures> = {}): Figures {
  return {
    at: '2026-01-01 00:00',
    command: 'npm run bench',
    commit: '0000000',
    machine: 'a test',
    isQuick: false,
    grounds: { redis: 'Redis' },
    versions: { bullmq: '6.7.0' },
    rows,
    calibrations: [{ ms: 30, cpuMs: 30 }],
    faults: [],
    ...others,
  }
}
