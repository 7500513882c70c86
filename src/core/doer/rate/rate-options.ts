import { callObserver } from '../../call-observer.js'
import { integerOption, numberOption, OptionTypeError, oneOfOption, stringOption } from '../../options.js'
import {
  callable,
  integer,
  keyPrefix,
  listener,
  number,
  oneOf,
  optional,
  readOptions,
  unchecked,
} from '../../read-options.js'
import type { Clock } from '../../time/clock.js'
import type { Ms } from '../../time/time.js'
import type { BacklogOptions } from '../backlog-alarm.js'
import { type ClockOptions, clockOption } from '../clock-option.js'
import type { Doer, DoerTaskOptions } from '../doer.js'
import { unlimitedDoer } from '../unlimited.js'
import { type Limiter, localLimiter } from './limiter.js'
import { gateTo, type RateBucket } from './permit-batch.js'
import { RATE_LIMIT_ALGORITHMS, type RateLimitAlgorithm, type RateLimitRule } from './rate-limit.js'
import { type RateLimitStore, storedLimiter } from './stored-limiter.js'

/** What a rate-limited doer says of its backlog. */
export interface RateLimitedBacklogInfo {
  /** Tasks that wait to be let through. */
  readonly pending: number
  /** How long there has been at least one waiting, without a break. */
  readonly nonEmptyForMs: Ms
}

/** Options of {@link rateLimitedDoer}. */
export interface RateLimitedDoerOptions extends BacklogOptions<RateLimitedBacklogInfo>, ClockOptions {
  /** How many tasks may start per `window`. */
  readonly limit: number
  /** In ms. */
  readonly window: Ms
  /** How starts are counted. Default: `fixed-window`. */
  readonly algorithm?: RateLimitAlgorithm
  /** Where the count is kept. Default: in this process. With a store, the limit is that of all who share it. */
  readonly store?: RateLimitStore
  /** The bucket to count in, or a function of a task's options that names it. Default: `doer`. */
  readonly key?: string | ((options: DoerTaskOptions) => string)
  /** How many tasks of one group may start per `window`, within `limit`. Default: groups are not limited. */
  readonly groupLimit?: number
  /** The group of a task; `undefined` leaves it without one. Default: its `group`. */
  readonly groupKey?: (options: DoerTaskOptions) => string | undefined
  /** Where groups are counted. Default: as `store`. */
  readonly groupStore?: RateLimitStore
  /** The shortest wait before a refused task is tried again. Default: 50. */
  readonly retryFloor?: Ms
  /** Who runs what is let through. Default: `unlimitedDoer()`. */
  readonly doer?: Doer
  /** What the keys in a store begin with. Default: `rl:`. */
  readonly prefix?: string
  /** Called when the store fails. The tasks stay, and the store is asked again. */
  readonly onError?: (error: unknown) => void
}

/** A task may bring its own group limit: known only when it comes, such as that of a customer's plan. */
export interface RateTaskOptions extends DoerTaskOptions {
  readonly groupLimit?: number
  /** Default: `window` of the doer. */
  readonly groupWindow?: Ms
  /** Default: `algorithm` of the doer. */
  readonly groupAlgorithm?: RateLimitAlgorithm
}

/** A doer whose tasks may bring a group limit. */
export interface RateLimitedDoer extends Doer {
  do(task: () => Promise<void>, options?: RateTaskOptions): void
}

/** The buckets that a task has to pass. */
export interface RateBuckets {
  readonly all: RateBucket
  readonly group: RateBucket | undefined
}

/** What a rate-limited doer is made of, once its options are known to be good. */
export interface RatePlan {
  readonly limit: number
  /** Whether all tasks count in one bucket. */
  readonly hasOneBucket: boolean
  readonly bucketsOf: (options: RateTaskOptions) => RateBuckets
  readonly retryFloor: Ms
  readonly inner: Doer
  readonly clock: Clock
  readonly report: (error: unknown) => void
}

const OWNER = 'rateLimitedDoer'

/** Checks the options and fills in their defaults. */
export function resolveRateOptions(options: RateLimitedDoerOptions): RatePlan {
  const given = read(options)
  const { limit, window, algorithm, retryFloor, doer: inner, onError } = given
  const clock = clockOption(OWNER, options)
  return {
    limit,
    hasOneBucket: typeof given.key !== 'function',
    bucketsOf: bucketsOption(given, { limit, window, algorithm }, clock),
    retryFloor,
    inner,
    clock,
    report: (error) => callObserver(() => onError?.(error)),
  }
}

const read = (options: RateLimitedDoerOptions) =>
  readOptions(OWNER, options, {
    limit: integer({ min: 1 }),
    window: number({ above: 0 }),
    algorithm: oneOf(RATE_LIMIT_ALGORITHMS, 'fixed-window'),
    store: storeOption,
    key: (path: string, key: unknown = 'doer') =>
      typeof key === 'function' ? (key as KeyOf) : stringOption(path, key),
    groupLimit: optional(integer({ min: 1 })),
    groupKey: callable<NonNullable<RateLimitedDoerOptions['groupKey']>>((task) => task.group),
    groupStore: storeOption,
    retryFloor: number({ above: 0, default: 50 }),
    doer: doerOption,
    prefix: keyPrefix('rl:'),
    onError: listener,
    clock: unchecked,
    now: unchecked,
    onBacklog: unchecked,
    backlogAfterMs: unchecked,
    backlogEveryMs: unchecked,
  })

function bucketsOption(given: ReturnType<typeof read>, rule: RateLimitRule, clock: Clock): RatePlan['bucketsOf'] {
  const local = localLimiter(clock)
  const { store, key, prefix, groupLimit, groupKey } = given
  const groupStore = given.groupStore ?? store
  const limiter: Limiter = store === undefined ? local : storedLimiter(store, clock)
  const groupLimiter: Limiter = groupStore === undefined ? local : storedLimiter(groupStore, clock)
  const groupsAt = `${prefix}${typeof key === 'string' ? key : 'doer'}:group:`
  const one = typeof key === 'string' ? gateTo(limiter, prefix + key, rule) : undefined

  return (task) => {
    const all = one ?? gateTo(limiter, prefix + keyFrom('key', (key as KeyOf)(task)), rule)
    const limit = task.groupLimit ?? groupLimit
    const group = limit === undefined ? undefined : groupKey(task)
    if (limit === undefined || group === undefined) return { all, group: undefined }
    const groupRule = {
      limit: integerOption(`${OWNER}.groupLimit`, limit, { min: 1 }),
      window: numberOption(`${OWNER}.groupWindow`, task.groupWindow ?? rule.window, { above: 0 }),
      algorithm: oneOfOption(`${OWNER}.groupAlgorithm`, task.groupAlgorithm ?? rule.algorithm, RATE_LIMIT_ALGORITHMS),
    }
    return { all, group: gateTo(groupLimiter, groupsAt + keyFrom('groupKey', group), groupRule) }
  }
}

type KeyOf = (task: DoerTaskOptions) => string

function keyFrom(option: string, key: unknown): string {
  if (typeof key !== 'string') throw new OptionTypeError(`${OWNER}.${option}`, 'a function that returns a string', key)
  return key
}

function storeOption(path: string, store: unknown): RateLimitStore | undefined {
  if (store === undefined || hasMethods(store, ['get', 'set'])) return store as RateLimitStore | undefined
  throw new OptionTypeError(path, 'a store with get and set', store)
}

function doerOption(path: string, doer: unknown): Doer {
  if (doer === undefined) return unlimitedDoer()
  if (hasMethods(doer, ['available', 'do', 'done'])) return doer as Doer
  throw new OptionTypeError(path, 'a doer: { available, do, done }', doer)
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
}
