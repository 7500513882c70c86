import {
  functionOption,
  integerOption,
  numberOption,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../options.js'
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
const NAMES = [
  'limit',
  'window',
  'algorithm',
  'store',
  'key',
  'groupLimit',
  'groupKey',
  'groupStore',
  'retryFloor',
  'doer',
  'prefix',
  'onError',
  'clock',
  'now',
  'onBacklog',
  'backlogAfterMs',
  'backlogEveryMs',
] as const

/** Checks the options and fills in their defaults. */
export function resolveRateOptions(options: RateLimitedDoerOptions): RatePlan {
  const given = optionsObject(OWNER, options, NAMES)
  const clock = clockOption(OWNER, given)
  const rule = ruleOption({ limit: given.limit, window: given.window, algorithm: given.algorithm })
  return {
    limit: rule.limit,
    hasOneBucket: typeof given.key !== 'function',
    bucketsOf: bucketsOption(given, rule, clock),
    retryFloor: numberOption(`${OWNER}.retryFloor`, given.retryFloor, { above: 0, default: 50 }),
    inner: doerOption(given.doer),
    clock,
    report: reportOption(given.onError),
  }
}

function bucketsOption(given: RateLimitedDoerOptions, rule: RateLimitRule, clock: Clock): RatePlan['bucketsOf'] {
  const local = localLimiter(clock)
  const store = storeOption('store', given.store)
  const groupStore = storeOption('groupStore', given.groupStore) ?? store
  const limiter: Limiter = store === undefined ? local : storedLimiter(store, clock)
  const groupLimiter: Limiter = groupStore === undefined ? local : storedLimiter(groupStore, clock)
  const prefix = given.prefix === '' ? '' : stringOption(`${OWNER}.prefix`, given.prefix, 'rl:')
  const key = typeof given.key === 'function' ? given.key : stringOption(`${OWNER}.key`, given.key, 'doer')
  const groupsAt = `${prefix}${typeof key === 'string' ? key : 'doer'}:group:`
  const groupLimit = given.groupLimit === undefined ? undefined : limitOption('groupLimit', given.groupLimit)
  const groupKey = functionOption<NonNullable<RateLimitedDoerOptions['groupKey']>>(
    `${OWNER}.groupKey`,
    given.groupKey,
    (task) => task.group,
  )
  const one = typeof key === 'string' ? gateTo(limiter, prefix + key, rule) : undefined

  return (task) => {
    const all = one ?? gateTo(limiter, prefix + keyFrom('key', (key as KeyOf)(task)), rule)
    const limit = task.groupLimit ?? groupLimit
    const group = limit === undefined ? undefined : groupKey(task)
    if (limit === undefined || group === undefined) return { all, group: undefined }
    const groupRule = ruleOption(
      { limit, window: task.groupWindow ?? rule.window, algorithm: task.groupAlgorithm ?? rule.algorithm },
      'group',
    )
    return { all, group: gateTo(groupLimiter, groupsAt + keyFrom('groupKey', group), groupRule) }
  }
}

type KeyOf = (task: DoerTaskOptions) => string

function keyFrom(option: string, key: unknown): string {
  if (typeof key !== 'string') throw new OptionTypeError(`${OWNER}.${option}`, 'a function that returns a string', key)
  return key
}

interface GivenRule {
  readonly limit: unknown
  readonly window: unknown
  readonly algorithm: unknown
}

function ruleOption({ limit, window, algorithm }: GivenRule, tier: '' | 'group' = ''): RateLimitRule {
  const name = (option: string) => (tier === '' ? option : tier + option[0]!.toUpperCase() + option.slice(1))
  return {
    limit: limitOption(name('limit'), limit),
    window: numberOption(`${OWNER}.${name('window')}`, window, { above: 0 }),
    algorithm: oneOfOption(`${OWNER}.${name('algorithm')}`, algorithm, RATE_LIMIT_ALGORITHMS, 'fixed-window'),
  }
}

function limitOption(name: string, value: unknown): number {
  return integerOption(`${OWNER}.${name}`, value, { min: 1 })
}

function storeOption(name: string, store: RateLimitStore | undefined): RateLimitStore | undefined {
  if (store === undefined) return undefined
  const isStore = typeof store === 'object' && store !== null && [store.get, store.set].every(isFunction)
  if (!isStore) throw new OptionTypeError(`${OWNER}.${name}`, 'a store with get and set', store)
  return store
}

function doerOption(doer: Doer | undefined): Doer {
  if (doer === undefined) return unlimitedDoer()
  const isDoer = typeof doer === 'object' && doer !== null && [doer.available, doer.do, doer.done].every(isFunction)
  if (!isDoer) throw new OptionTypeError(`${OWNER}.doer`, 'a doer: { available, do, done }', doer)
  return doer
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

function reportOption(onError: RateLimitedDoerOptions['onError']): (error: unknown) => void {
  const listener = functionOption<(error: unknown) => void>(`${OWNER}.onError`, onError, () => {})
  return (error) => {
    try {
      listener(error)
    } catch {
      // There is nothing left to report it to; the tasks still have to be let through.
    }
  }
}
