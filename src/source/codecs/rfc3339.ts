import type { At } from '../../core/time/time.js'

const PATTERN = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/** The instant of an RFC 3339 timestamp, `undefined` when it is none. (`Date.parse` also takes many things that are not.) */
export function parseRfc3339(text: string): At | undefined {
  const found = PATTERN.exec(text)
  if (found === null) return undefined
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const sign = found[8] === '-' ? -1 : 1
  const [offsetHours, offsetMinutes] = [Number(found[9] ?? 0), Number(found[10] ?? 0)]
  const isInRange =
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysIn(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 60 && // A leap second.
    offsetHours <= 23 &&
    offsetMinutes <= 59
  if (!isInRange) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day) // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  date.setUTCHours(hour, minute, second, Number(`${found[7] ?? ''}000`.slice(0, 3)))
  return date.getTime() - sign * (offsetHours * 60 + offsetMinutes) * 60_000
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}
