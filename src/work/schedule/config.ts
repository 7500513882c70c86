import { MillraceError } from '../../core/error.js'
import {
  functionOption,
  numberOption,
  OptionRangeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import type { At, Ms } from '../../core/time.js'
import { checkInstanceOptions } from '../resolve-item.js'
import type { Work, WorkInstanceOptions } from '../work.js'
import { lastMatch, nextMatch } from './next-after.js'
import { wallMatcher } from './wall-matcher.js'
import { zoneOf } from './zone.js'

/** One occurrence of a schedule. */
export interface ScheduledFire {
  readonly name: string
  /** When it was due, epoch ms: the same for whoever fires it, however late. */
  readonly at: number
}

/** What `schedule` takes. Give either `cron` or `next`. */
export interface ScheduleConfig {
  /** Under this name a fleet agrees on when it fires next: every process that schedules it takes part. */
  readonly name: string
  /** Five fields (minute, hour, day of month, month, day of week), or `@hourly`, `@daily`, … */
  readonly cron?: string
  /**
   * When it is due next, given the time: epoch ms, a `Date`, or nothing to end it. At most once a second. One that
   * does not answer within 25 seconds is reported, and asked again.
   */
  readonly next?: (now: number) => NextTime | Promise<NextTime>
  /**
   * Called by one process of the fleet for each occurrence; the work that it returns is enqueued, exactly once. Work that is
   * built in here gets its id from name and time. Be quick: what takes longer than a minute is no longer waited for.
   */
  readonly run: (fire: ScheduledFire) => ScheduledWork | Promise<ScheduledWork>
  /** The time zone in which `cron` is read, an IANA name. Default: local time. */
  readonly tz?: string
  /** How the work is enqueued. */
  readonly options?: WorkInstanceOptions
  /** What becomes of occurrences that nobody was there to fire. Default `'skip'`. */
  readonly catchUp?: 'skip' | 'one' | 'all'
  /** Spreads occurrences: each fires up to so many ms later, by an amount that its name and time decide. Default 0. */
  readonly jitter?: number
}

type NextTime = number | Date | null | undefined | void
type ScheduledWork = Work | null | undefined | void

/** A schedule with nothing left open. */
export interface Schedule {
  readonly name: string
  /** How people and the fleet know its rule. */
  readonly spec: string
  readonly isCron: boolean
  /** The first occurrence after `at`; undefined: there is none. */
  next(at: At): Promise<At | undefined>
  /** The last occurrence of those from `first` to `now`. */
  last(first: At, now: At): At
  readonly run: ScheduleConfig['run']
  readonly options: WorkInstanceOptions | undefined
  readonly catchUp: 'skip' | 'one' | 'all'
  readonly jitterMs: Ms
}

const NAMES = [
  'name',
  'cron',
  'next',
  'run',
  'tz',
  'options',
  'catchUp',
  'jitter',
] as const satisfies readonly (keyof ScheduleConfig)[]

/** Bad input throws here, at the call, and nothing is scheduled. */
export function resolveSchedule(config: ScheduleConfig): Schedule {
  // Given nothing at all, it is the name that is missing first.
  const given = optionsObject('schedule', config ?? {}, NAMES)
  const name = stringOption('schedule.name', given.name)
  if ((given.cron === undefined) === (given.next === undefined)) {
    const both = given.cron === undefined ? '' : ', not both'
    throw new MillraceError('BAD_OPTION', `schedule "${name}": provide either "cron" or "next"${both}`, {
      facts: { name },
    })
  }
  if (given.options !== undefined) checkInstanceOptions('schedule.options', given.options)
  return Object.freeze({
    name,
    ...(given.cron === undefined ? byFunction(name, given) : byCron(given.cron, given.tz)),
    run: functionOption<ScheduleConfig['run']>('schedule.run', given.run),
    options: given.options,
    catchUp: oneOfOption('schedule.catchUp', given.catchUp, ['skip', 'one', 'all'], 'skip'),
    jitterMs: numberOption('schedule.jitter', given.jitter, { min: 0, default: 0 }),
  })
}

type Rule = Pick<Schedule, 'spec' | 'isCron' | 'next' | 'last'>

function byCron(cron: string, tz: string | undefined): Rule {
  const matcher = wallMatcher(cron)
  const zone = zoneOf(tz === undefined ? undefined : stringOption('schedule.tz', tz), 'schedule.tz')
  const spelt = cron.trim().split(/\s+/).join(' ')
  return {
    spec: tz === undefined ? spelt : `TZ=${tz} ${spelt}`,
    isCron: true,
    next: async (at) => nextMatch(matcher, zone, at),
    last: (first, now) => lastMatch(matcher, zone, first, now),
  }
}

function byFunction(name: string, { next, tz }: ScheduleConfig): Rule {
  const ask = functionOption<NonNullable<ScheduleConfig['next']>>('schedule.next', next)
  if (tz !== undefined)
    throw new MillraceError('BAD_OPTION', `schedule "${name}": tz goes with cron; next() knows its own`, {
      facts: { name },
    })
  return {
    spec: 'next()',
    isCron: false,
    next: async (now) => {
      const answer = await ask(now)
      if (answer === undefined || answer === null) return undefined
      const at = Math.ceil(Number(answer))
      if ((typeof answer !== 'number' && !(answer instanceof Date)) || !Number.isFinite(at) || at < 0 || at >= NEVER)
        throw new OptionRangeError(`schedule "${name}": next(now)`, 'epoch ms, a Date, or nothing', answer)
      return at
    },
    last: (first) => first,
  }
}

/** The end of time that a `Date` can tell: a schedule that is over stands there. */
export const NEVER: At = 8_640_000_000_000_000
