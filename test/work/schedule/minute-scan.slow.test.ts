import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextAfter, parseCron } from '../../../src/index.js'

const MINUTE = 60_000
const DAY = 86_400_000

/** Four days around a change of clocks, minute by minute: what the clocks show, as if it were UTC. */
function daysAround(tz: string, change: string): { tz: string; from: number; walls: number[] } {
  const from = Date.parse(change) - 2 * DAY
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: tz, dateStyle: 'short', timeStyle: 'medium' })
  const walls = Array.from({ length: (4 * DAY) / MINUTE }, (_, n) =>
    Date.parse(`${format.format(from + n * MINUTE).replace(' ', 'T')}Z`),
  )
  return { tz, from, walls }
}

const SPANS = [
  daysAround('America/New_York', '2026-03-08T07:00:00Z'),
  daysAround('America/New_York', '2026-11-01T06:00:00Z'),
  daysAround('Europe/Berlin', '2026-03-29T01:00:00Z'),
  daysAround('Europe/Berlin', '2026-10-25T01:00:00Z'),
  daysAround('Australia/Lord_Howe', '2026-10-03T15:30:00Z'),
  daysAround('Australia/Lord_Howe', '2026-04-04T15:00:00Z'),
  daysAround('Antarctica/Casey', '2010-03-04T15:00:00Z'),
]

/** The rules of the documentation, by checking every minute. */
function scan(expr: string, { from, walls }: (typeof SPANS)[number]): number[] {
  const cron = parseCron(expr)
  const [minute, hour] = expr.split(' ')
  const isMatch = (wall: number) => {
    const date = new Date(wall)
    const days = [cron.dom.has(date.getUTCDate()), cron.dow.has(date.getUTCDay())]
    const isDay = cron.domRestricted && cron.dowRestricted ? days.includes(true) : !days.includes(false)
    const isMinute = cron.minute.has(date.getUTCMinutes()) && cron.hour.has(date.getUTCHours())
    return isDay && isMinute && cron.month.has(date.getUTCMonth() + 1)
  }
  const isWild = minute!.includes('*') || hour!.includes('*')
  const seen = new Set<number>()
  const fires = new Set<number>()
  walls.forEach((wall, n) => {
    const at = from + n * MINUTE
    const last = walls[n - 1] ?? wall - MINUTE
    const gap = wall - last - MINUTE
    for (let left = last + MINUTE; left < wall; left += MINUTE) {
      if (isMatch(left) && !(hour!.includes('*') && isMatch(left + gap))) fires.add(at)
    }
    if (isMatch(wall) && (isWild || !seen.has(wall))) fires.add(at)
    seen.add(wall)
  })
  return [...fires]
}

const field = (min: number, max: number) => {
  const one = fc.integer({ min, max })
  const range = fc.tuple(one, one).map(([a, b]) => [Math.min(a, b), Math.max(a, b)])
  const step = fc.integer({ min: 1, max: 40 })
  const part = fc.oneof(
    one.map(String),
    range.map(([a, b]) => `${a}-${b}`),
    fc.tuple(range, step).map(([[a, b], s]) => `${a}-${b}/${s}`),
    fc.tuple(one, step).map(([a, s]) => `${a}/${s}`),
  )
  const list = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(','))
  return fc.oneof(
    { weight: 2, arbitrary: list },
    fc.constant('*'),
    step.map((s) => `*/${s}`),
  )
}
// Hours at which clocks change come up often.
const hours = fc.oneof(field(0, 23), fc.constantFrom('1', '2', '1,2', '2,3', '1-3', '0-3/2', '3'))
const days = (min: number, max: number) => fc.oneof({ weight: 4, arbitrary: fc.constant('*') }, field(min, max))
const expressions = fc.tuple(field(0, 59), hours, days(1, 31), days(1, 12), days(0, 7)).map((all) => all.join(' '))

describe('any cron expression, in days when clocks change', () => {
  // W24
  it('matches when a scan of every minute does', () => {
    fc.assert(
      fc.property(
        expressions,
        fc.constantFrom(...SPANS),
        fc.integer({ min: 0, max: 3 * DAY }),
        (expr, span, afterMs) => {
          const from = span.from + afterMs
          const expected = scan(expr, span).filter((at) => at > from)
          let at = from
          for (const next of expected.slice(0, 8)) {
            at = nextAfter(expr, at, span.tz) ?? Infinity
            expect(new Date(at).toISOString(), `after ${new Date(from).toISOString()}`).toBe(
              new Date(next).toISOString(),
            )
          }
          if (expected.length === 0)
            expect(nextAfter(expr, from, span.tz) ?? Infinity).toBeGreaterThan(span.from + 4 * DAY - MINUTE)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
