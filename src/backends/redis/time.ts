import { numberOption, OptionError, OptionTypeError } from '../../core/options.js'
import { type Clock, clockFrom, isClock, neverBackwards } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'

/** What scripts get for the time: nothing, and then the server's counts, or an instant of a test's clock. */
export type Now = () => At | ''

export interface TimeOptions {
  /** Epoch ms, instead of the server's time. For tests: every process on the same data has to have the same. */
  readonly now?: (() => At) | Clock
  /** A clock instead of `now`. */
  readonly clock?: Clock
}

export function nowOf(options: TimeOptions, owner: string): Now {
  const { now, clock } = options
  if (now === undefined && clock === undefined) return () => ''
  if (now !== undefined && clock !== undefined) {
    throw new OptionError(`${owner}.now`, 'left out when `clock` is given, because both say what time it is', now)
  }
  const given = clock !== undefined ? clock : now
  if (typeof given !== 'function' && !isClock(given)) {
    throw new OptionTypeError(`${owner}.${clock === undefined ? 'now' : 'clock'}`, 'a function or a Clock', given)
  }
  const read = neverBackwards(clockFrom(given).now)
  return () => Math.floor(read())
}

/** Instants beyond this are as good as never, and numbers up to it are exact. */
const MAX_MS = 2 ** 52

/** A duration as scripts take it: whole milliseconds, or '' for one that does not end. */
export function msWord(ms: Ms): string {
  if (!(ms < MAX_MS)) return ''
  return ms > 0 ? String(Math.ceil(ms)) : '0'
}

/** A duration that a caller of a port gave: a negative one counts as none, and what is no number is refused by name. */
export function givenDuration(path: string, ms: Ms | undefined): Ms {
  return Math.min(MAX_MS, Math.max(0, Math.ceil(numberOption(path, ms, { default: 0, infinite: true }))))
}
