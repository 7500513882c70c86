import { numberOption, OptionError, OptionTypeError } from '../../core/options.js'
import { type Clock, clockFrom, isClock, neverBackwards } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'

/** Where a memory port takes its time from. */
export interface MemoryOptions {
  /** Epoch ms. Default: `Date.now`. A whole clock is accepted too. */
  readonly now?: (() => At) | Clock
  /** A clock instead of `now`. */
  readonly clock?: Clock
}

/**
 * The two times of a memory backend. `wall` is what people mean by "at nine": due times and expiry. `steady` measures leases:
 * when the machine's clock is set, no lease ends early and none is stretched. Neither ever decreases.
 */
export interface Time {
  wall(): At
  steady(): Ms
}

/** The time that the options ask for. `owner` names the factory in errors. */
export function timeOf(options: MemoryOptions, owner: string): Time {
  const { now, clock } = options
  if (now !== undefined && clock !== undefined) {
    throw new OptionError(`${owner}.now`, 'left out when `clock` is given, because both say what time it is', now)
  }
  // Not `??`: a null is a mistake to report, not a request for the default.
  const given = clock !== undefined ? clock : now !== undefined ? now : Date.now
  if (typeof given !== 'function' && !isClock(given)) {
    throw new OptionTypeError(`${owner}.${clock === undefined ? 'now' : 'clock'}`, 'a function or a Clock', given)
  }
  const from = clockFrom(given)
  return { wall: neverBackwards(from.now), steady: from.monotonic }
}

/** A duration as a port takes it: what is negative or no number counts as none. */
export function durationOf(ms: Ms | undefined): Ms {
  return ms !== undefined && ms > 0 ? ms : 0
}

/** A duration that a caller of a port gave: a negative one counts as none, and what is no finite number is refused by name. */
export function givenDuration(path: string, ms: Ms | undefined): Ms {
  return Math.max(0, numberOption(path, ms, { default: 0 }))
}
