import type { PlaceKind } from '../contenders/contender.js'
import type { Calibration } from '../remote-contender.js'

/** What is measured of every contender on a ground. */
export type Measure = 'drain' | 'callers' | 'bulk' | 'idle p50' | 'p99 at 500/s'

/** Processor time for an item, in microseconds. */
export interface ProcessorTime {
  readonly clientUs: number
  readonly serverUs: number
}

/** The figures of one contender in one row: one for each round, in the order of the rounds. */
export interface Series {
  readonly name: string
  readonly values: readonly number[]
  readonly processor?: readonly ProcessorTime[]
}

export interface Row {
  readonly kind: PlaceKind
  readonly measure: Measure
  /** `/s` is better when it is more, `ms` when it is less. */
  readonly unit: '/s' | 'ms'
  readonly ours: Series
  readonly peers: readonly Series[]
}

/** One run of the comparative bench, as it is stored. */
export interface Figures {
  readonly at: string
  readonly command: string
  readonly commit: string
  readonly machine: string
  readonly isQuick: boolean
  readonly grounds: Readonly<Partial<Record<PlaceKind, string>>>
  /** The version of each contender. */
  readonly versions: Readonly<Record<string, string>>
  readonly rows: readonly Row[]
  /** Before every turn of every contender. */
  readonly calibrations: readonly Calibration[]
  /** What makes the figures worthless whatever they are, each as a sentence: an error, a second run, a lost item, a heap that grows. */
  readonly faults: readonly string[]
}
