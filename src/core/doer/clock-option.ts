import { functionOption, OptionTypeError } from '../options.js'
import { type Clock, clockFrom } from '../time/clock.js'
import type { At } from '../time/time.js'

/** Where an option object takes its time from. */
export interface ClockOptions {
  /** Time and timers. Default: real time. */
  readonly clock?: Clock
  /** Only the time, timers being real; `clock` goes before it. Default: `Date.now`. */
  readonly now?: () => At
}

/** The clock that these options ask for. */
export function clockOption(owner: string, { clock, now }: ClockOptions): Clock {
  if (clock === undefined) return clockFrom(functionOption<() => At>(`${owner}.now`, now, Date.now))
  const isClock = typeof clock === 'object' && clock !== null && typeof clock.after === 'function'
  if (!isClock) throw new OptionTypeError(`${owner}.clock`, 'a Clock: { now, monotonic, after, sleep }', clock)
  return clock
}
