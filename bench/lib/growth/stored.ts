import type { PlaceKind } from '../contenders/contender.js'
import type { Calibration } from '../remote-contender.js'
import type { AtRest } from './at-rest.js'
import type { Point } from './axes.js'
import type { Scale, Sizes } from './sizes.js'

/** When and where something was measured. */
export interface Circumstances {
  readonly at: string
  readonly commit: string
  readonly machine: string
  readonly about: string
  /** Before the first figure and after each. */
  readonly calibrations: readonly Calibration[]
}

export interface GrowthOf {
  readonly what: keyof Sizes
  readonly kind: PlaceKind
  readonly circumstances: Circumstances
  readonly points: readonly Point[]
}

export interface RestOf {
  readonly what: 'rest'
  readonly kind: PlaceKind
  readonly circumstances: Circumstances
  readonly contenders: readonly AtRest[]
}

export type Measured = GrowthOf | RestOf

/** What is known on one scale: of each axis and backend the last run. */
export interface Stored {
  readonly scale: Scale
  readonly measured: readonly Measured[]
}

const isSame = (a: Measured, b: Measured) => a.what === b.what && a.kind === b.kind

/** With what has just been measured; the rest stays as it was. */
export function withMeasured(stored: Stored, fresh: readonly Measured[]): Stored {
  const kept = stored.measured.filter((one) => !fresh.some((other) => isSame(one, other)))
  return { ...stored, measured: [...kept, ...fresh] }
}
