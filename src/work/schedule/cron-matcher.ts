import { Cron as Croner } from 'croner'
import type { At } from '../../core/time/time.js'
import { type Cron, cronFields, parseCron } from './cron.js'

/** Which local times a cron expression matches, in whatever time zone. */
export interface WallMatcher {
  readonly hasWildHour: boolean
  readonly hasWildMinute: boolean
  /** The first match strictly after this local time, both written as if they were UTC. */
  nextWall(after: At): At | undefined
  /** Whether this local time is a match. */
  matches(wall: At): boolean
}

/** How many expressions are cached: parsing one costs ten times as much as asking it. */
const REMEMBERED = 500
const remembered = new Map<string, WallMatcher>()

const LONGEST_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

/** The matcher of an expression. Throws a `CronError` if it cannot be read. */
export function wallMatcher(expr: string): WallMatcher {
  const known = remembered.get(expr)
  if (known !== undefined) return known
  const made = makeMatcher(expr)
  if (remembered.size >= REMEMBERED) {
    const oldest = remembered.keys().next()
    if (oldest.done !== true) remembered.delete(oldest.value)
  }
  remembered.set(expr, made)
  return made
}

function makeMatcher(expr: string): WallMatcher {
  const cron = parseCron(expr)
  const [minute, hour] = cronFields(expr)
  // Croner works in UTC, where all days are alike: it does the calendar, and the rules of time zones are ours.
  const croner = new Croner(canonical(cron), { mode: '5-part', utcOffset: 0, paused: true })
  const isPossible = canMatch(cron)
  return {
    hasWildHour: hour.includes('*'),
    hasWildMinute: minute.includes('*'),
    nextWall: (after) => (isPossible ? croner.nextRun(new Date(after))?.getTime() : undefined),
    matches: (wall) => matches(cron, new Date(wall)),
  }
}

/** The same expression in lists of numbers. `*` only where a day is not restricted, which croner relies on. */
function canonical({ minute, hour, dom, month, dow, domRestricted, dowRestricted }: Cron): string {
  const list = (values: Set<number>, isRestricted = true) => (isRestricted ? [...values].join(',') : '*')
  return [list(minute), list(hour), list(dom, domRestricted), list(month), list(dow, dowRestricted)].join(' ')
}

/** Whether there is such a day. Croner would search centuries for a 30 February. */
function canMatch({ dom, month, domRestricted, dowRestricted }: Cron): boolean {
  if (!domRestricted || dowRestricted) return true
  return [...month].some((one) => [...dom].some((day) => day <= LONGEST_MONTH[one - 1]!))
}

function matches(cron: Cron, wall: Date): boolean {
  const { minute, hour, month, dom, dow, domRestricted, dowRestricted } = cron
  const isMinute = minute.has(wall.getUTCMinutes()) && hour.has(wall.getUTCHours()) && month.has(wall.getUTCMonth() + 1)
  if (!isMinute) return false
  const [isDom, isDow] = [dom.has(wall.getUTCDate()), dow.has(wall.getUTCDay())]
  return domRestricted && dowRestricted ? isDom || isDow : isDom && isDow
}
