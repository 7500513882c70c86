import { OptionError } from '../../core/options.js'
import type { At, Ms } from '../../core/time/time.js'

/** How far local time is ahead of UTC at an instant. */
export type Zone = (at: At) => Ms

const zones = new Map<string, Zone>()

/** The zone of this process. Not cached: `process.env.TZ` may change while it runs. */
const localZone: Zone = (at) => -new Date(at).getTimezoneOffset() * 60_000

/** The zone of this IANA name, or the local one. Throws if there is no such zone. */
export function zoneOf(tz: string | undefined, option = 'tz'): Zone {
  if (tz === undefined) return localZone
  const known = zones.get(tz)
  if (known !== undefined) return known
  const made = makeZone(tz, option)
  zones.set(tz, made)
  return made
}

function makeZone(tz: string, option: string): Zone {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: tz,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    throw new OptionError(option, "an IANA time zone like 'Europe/Berlin'", tz)
  }
  return (at) => {
    const second = Math.floor(at / 1000) * 1000
    const read: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(second)) read[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second: seconds = 0 } = read
    return Date.UTC(year, month - 1, day, hour, minute, seconds) - second
  }
}

/** The first instant of `(from, to]` at which the offset is no longer the one at `from`. They must differ. */
export function changeBetween(zone: Zone, from: At, to: At): At {
  const before = zone(from)
  let [low, high] = [from, to]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (zone(middle) === before) low = middle
    else high = middle
  }
  return high
}
