import { MillraceError } from '../../core/error.js'
import { functionOption, OptionRangeError, stringOption } from '../../core/options.js'
import { callable, number, oneOf, readOptions, text, unchecked } from '../../core/read-options.js'
import type { At, Ms } from '../../core/time/time.js'
import type { Work, WorkInstanceOptions } from '../define/work.js'
import { checkInstanceOptions } from '../enqueue/resolve-item.js'
import { wallMatcher } from './cron-matcher.js'
import { lastMatch, nextMatch } from './next-after.js'
import { zoneOf } from './zone.js'

/** One occurrence of a schedule. */
export interface ScheduledFire {
  readonly name: string
  /** When it was due, epoch ms: the same in whichever process fires it, however late. */
  readonly at: number
}

/** What `schedule` takes. Give either `cron` or `next`. */
export interface ScheduleConfig {
  /** The name by which a fleet agrees on when it fires next: every process that schedules it takes part. */
  readonly name: string
  /** Five fields (minute, hour, day of month, month, day of week), or `@hourly`, `@daily`, … */
  readonly cron?: string
  /**
   * Instead of `cron`: returns the next time as epoch ms or a `Date`; `undefined` ends the schedule. At most once a second. If it
   * does not answer within 25 seconds, that is reported, and it is called again.
   */
  readonly next?: (now: number) => NextTime | Promise<NextTime>
  /**
   * Called by one process of the fleet for each occurrence; the work that it returns is enqueued exactly once. Work that is built
   * here gets its id from name and time. Be quick: after a minute the schedule goes on without waiting.
   */
  readonly run: (fire: ScheduledFire) => ScheduledWork | Promise<ScheduledWork>
  /** The time zone in which `cron` is read, an IANA name. Default: local time. */
  readonly tz?: string
  /** How the work is enqueued. */
  readonly options?: WorkInstanceOptions
  /** What becomes of occurrences that were due while no process ran. Default `'skip'`. */
  readonly catchUp?: 'skip' | 'one' | 'all'
  /** Spreads occurrences: each fires up to so many ms later; its name and time decide how many. Default 0. */
  readonly jitter?: number
}

type NextTime = number | Date | null | undefined | void
type ScheduledWork = Work | null | undefined | void

/** A schedule with its defaults. */
export interface Schedule {
  readonly name: string
  /** Its rule as text, by which the fleet tells rules apart. */
  readonly spec: string
  readonly isCron: boolean
  /** The first occurrence after `at`; undefined: there is none. */
  next(at: At): Promise<At | undefined>
  /** The last occurrence from `first` to `now`. */
  last(first: At, now: At): At
  readonly run: ScheduleConfig['run']
  readonly options: WorkInstanceOptions | undefined
  readonly catchUp: 'skip' | 'one' | 'all'
  readonly jitterMs: Ms
}

/** Bad options throw here, at the call, and nothing is scheduled. */
export function resolveSchedule(config: ScheduleConfig): Schedule {
  const { name, cron, next, run, tz, options, catchUp, jitter } = readOptions('schedule', config ?? {}, {
    name: text(),
    cron: unchecked,
    next: unchecked,
    run: callable<ScheduleConfig['run']>(),
    tz: unchecked,
    options: unchecked,
    catchUp: oneOf(['skip', 'one', 'all'], 'skip'),
    jitter: number({ min: 0, default: 0 }),
  })
  if ((cron === undefined) === (next === undefined)) {
    const both = cron === undefined ? '' : ', not both'
    throw new MillraceError('BAD_OPTION', `schedule "${name}": provide either "cron" or "next"${both}`, {
      facts: { name },
    })
  }
  checkInstanceOptions('schedule.options', options)
  const rule = cron === undefined ? byFunction(name, next, tz) : byCron(cron, tz)
  return Object.freeze({ name, ...rule, run, options, catchUp, jitterMs: jitter })
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

function byFunction(name: string, next: ScheduleConfig['next'], tz: string | undefined): Rule {
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

/** The last instant of a `Date`: the next time of a schedule that is over. */
export const NEVER: At = 8_640_000_000_000_000
