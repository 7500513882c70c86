import { OptionRangeError } from '../options.js'
import type { Random } from '../time/clock.js'
import type { Ms } from '../time/time.js'

/**
 * How much of a delay is left to chance, so that what failed together does not come back together. A number from 0 to 1
 * is the share that may be taken off: 0.5 gives between half and all of the delay. `'full'` gives anything from nothing
 * to all of it, and spreads best. `true` is `'full'`, `false` is 0.
 */
export type Jitter = 'full' | number | boolean

/** Jitter after its option was read. */
export type JitterShare = 'full' | number

/** Reads a jitter option: `undefined` takes the fallback, anything else that is none is a RangeError. */
export function jitterOption(path: string, value: unknown, fallback: JitterShare): JitterShare {
  if (value === undefined) return fallback
  if (value === true || value === 'full') return 'full'
  if (value === false) return 0
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw new OptionRangeError(path, "'full', true, false or a number from 0 to 1", value)
}

/** The delay that chance makes of `ms`. */
export function withJitter(ms: Ms, jitter: JitterShare, random: Random): Ms {
  if (jitter === 'full') return ms * draw(random)
  return jitter === 0 ? ms : ms * (1 - jitter * draw(random))
}

/** The shortest and longest delay that chance can make of `ms`. */
export function jitterRange(ms: Ms, jitter: JitterShare): { readonly minMs: Ms; readonly maxMs: Ms } {
  return { minMs: jitter === 'full' ? 0 : ms * (1 - jitter), maxMs: ms }
}

const BELOW_ONE = 1 - Number.EPSILON / 2

/**
 * One number in `[0, 1)`, whatever `random` does. Out of range is clamped; no number at all, or a throw, counts as the
 * middle: 0 would turn full jitter into no delay and a broken generator into a hot loop.
 */
function draw(random: Random): number {
  let drawn: unknown
  try {
    drawn = random()
  } catch {
    return 0.5
  }
  if (typeof drawn !== 'number' || Number.isNaN(drawn)) return 0.5
  return Math.min(Math.max(drawn, 0), BELOW_ONE)
}
