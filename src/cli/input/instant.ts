import type { At } from '../../core/time/time.js'
import { parseDuration } from './duration.js'

/** The largest instant that a Date can hold. */
const LAST: At = 8_640_000_000_000_000

const DAY_MS = 86_400_000

/**
 * `2026-01-31`, `2026-01-31T14:05:00Z`, `02:00` (the last time it was that late), epoch milliseconds, or a duration before now (`2h` is
 * two hours ago). A time without a zone is UTC, like all displayed times. Undefined: not an instant.
 */
export function parseInstant(text: string, now: At): At | undefined {
  if (/^\d{9,16}$/.test(text)) return Number(text) <= LAST ? Number(text) : undefined
  const date = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text)
  if (date !== null) {
    const [, day, time = '00:00', zone = 'Z'] = date
    const at = Date.parse(`${day}T${time}${zone}`)
    // A Date takes the 30th of February for the 2nd of March.
    const midnight = Date.parse(`${day}T00:00Z`)
    const isReal = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(day!)
    return Number.isNaN(at) || !isReal ? undefined : at
  }
  const clock = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(text)
  if (clock !== null) {
    const [, hours, minutes, seconds = '0'] = clock
    const at =
      Math.floor(now / DAY_MS) * DAY_MS + (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000
    return at > now ? at - DAY_MS : at
  }
  const ago = parseDuration(text)
  return ago === undefined || ago > now ? undefined : now - ago
}
