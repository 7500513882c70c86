import type { At, Ms } from '../../core/time/time.js'
import { CronError } from './cron.js'
import { type WallMatcher, wallMatcher } from './cron-matcher.js'
import { changeBetween, type Zone, zoneOf } from './zone.js'

const DAY_MS: Ms = 86_400_000
/** How far ahead to search for a match. The longest wait for a 29 February is eight years, across 2100. */
const HORIZON_MS: Ms = 8 * 366 * DAY_MS
/** The largest step back that clocks have made anywhere since UTC exists. */
const LARGEST_STEP_MS: Ms = 3 * 3_600_000

/**
 * The first time strictly after `fromMs` that matches the cron expression, as epoch ms; undefined when there is none within
 * eight years. Read in the time zone `tz` (IANA), or in local time.
 *
 * When clocks change: a time that does not exist because clocks went forward matches at the first moment after the gap; one
 * that comes twice because clocks went back matches the first time only. Where the hour or the minute is a wildcard
 * (`*`, `*` with a step), it goes by real time: both of the repeated hours match, and an hour that is left out is not made up
 * for if its turn comes at the same real moment.
 *
 * @example
 * ```ts
 * nextAfter('0 3 * * *', Date.now(), 'Europe/Berlin')
 * ```
 */
export function nextAfter(expr: string, fromMs: number, tz?: string): number | undefined {
  const matcher = wallMatcher(expr)
  const zone = zoneOf(tz, 'nextAfter.tz')
  if (typeof fromMs !== 'number' || !Number.isFinite(fromMs))
    throw new CronError(`nextAfter(expr, fromMs): fromMs must be a finite number, got ${String(fromMs)}`, { expr })
  return nextMatch(matcher, zone, fromMs)
}

/** The same for an expression that has been read. */
export function nextMatch(matcher: WallMatcher, zone: Zone, from: At): At | undefined {
  const until = from + HORIZON_MS
  const begins = whereToBegin(matcher, zone, from)
  if ('at' in begins) return begins.at
  let wall: At | undefined = begins.wall
  for (;;) {
    wall = matcher.nextWall(wall)
    if (wall === undefined || wall - LARGEST_STEP_MS - DAY_MS > until) return undefined
    const at = instantOf(matcher, zone, wall, from)
    if (at !== undefined) return at > until ? undefined : at
  }
}

/**
 * The last match up to `now`, given that `first` is one. Found by bisection: a year of missed occurrences costs about forty
 * steps.
 */
export function lastMatch(matcher: WallMatcher, zone: Zone, first: At, now: At): At {
  let last = first
  // There is no match after `none`, up to `now`.
  let none = now
  while (none > last) {
    const middle = Math.floor((last + none) / 2)
    const next = nextMatch(matcher, zone, middle)
    if (next !== undefined && next <= now) last = next
    else none = middle
  }
  return last
}

/**
 * The local time after which to search: the current one. Unless clocks are about to be set back to a time that they have shown:
 * then the next match may have an earlier local time than now, and is searched here.
 */
function whereToBegin(matcher: WallMatcher, zone: Zone, from: At): { readonly at: At } | { readonly wall: At } {
  const before = zone(from)
  const shown = { wall: from + before }
  if (zone(from + LARGEST_STEP_MS) >= before) return shown
  const change = changeBetween(zone, from, from + LARGEST_STEP_MS)
  const after = zone(change)
  if (change + after > shown.wall) return shown
  const first = matcher.nextWall(shown.wall)
  if (first !== undefined && first - before < change) return { at: first - before }
  if (matcher.hasWildHour || matcher.hasWildMinute) {
    const second = matcher.nextWall(change + after - 1)
    if (second !== undefined && second < change + before) return { at: second - after }
  }
  // Without a wildcard, only the first of the two passes counts.
  return { wall: change + before - 1 }
}

/** When the zone first has this local time after `from`, by the rules of {@link nextAfter}; undefined: never. */
function instantOf(matcher: WallMatcher, zone: Zone, wall: At, from: At): At | undefined {
  // A local time is within a day of its instant.
  const before = zone(wall - DAY_MS)
  const after = zone(wall + DAY_MS)
  if (before === after) return wall - before
  const [early, late] = [wall - Math.max(before, after), wall - Math.min(before, after)]
  const shown = [early, late].filter((at) => at + zone(at) === wall)
  if (shown.length === 0) {
    const gapMs = after - before
    // With wildcard hours, this moment has a local time `gapMs` later, which is a match itself.
    const comesAnyway = matcher.hasWildHour && matcher.matches(wall + gapMs)
    const change = changeBetween(zone, early, late)
    return comesAnyway || change <= from ? undefined : change
  }
  const [first, second] = shown
  if (first !== undefined && first > from) return first
  return second !== undefined && second > from && (matcher.hasWildHour || matcher.hasWildMinute) ? second : undefined
}
