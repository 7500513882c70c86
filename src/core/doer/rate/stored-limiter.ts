import { processWide } from '../../process/process-wide.js'
import type { Clock } from '../../time/clock.js'
import type { MaybePromise, Ms } from '../../time/time.js'
import type { Limiter, Permits } from './limiter.js'
import { type RateLimitRule, type RateLimitState, returnPermits, takePermits } from './rate-limit.js'

/**
 * What a limit needs of a store to be shared between processes: the `Store` port has all of it.
 *
 * With `compareAndSet` every algorithm is exact across processes. With only `increment` both window algorithms are (a fixed
 * window is then counted from the epoch, not from its first start). A token bucket without `compareAndSet`, and everything
 * on a store that has neither, is exact within one process only.
 */
export interface RateLimitStore {
  get(key: string): MaybePromise<string | undefined>
  set(key: string, value: string, ttl?: Ms): MaybePromise<void>
  setIfNotExists(key: string, value: string, ttl?: Ms): MaybePromise<boolean>
  increment?(key: string, by: number, ttl?: Ms): MaybePromise<number>
  compareAndSet?(key: string, expected: string | undefined, next: string, ttl?: Ms): MaybePromise<boolean>
}

// Methods of a store are taken off it once and called without it, as those of every port are.
type Get = RateLimitStore['get']
type Increment = NonNullable<RateLimitStore['increment']>
type Swap = NonNullable<RateLimitStore['compareAndSet']>

/** Each failure means that another process succeeded; after so many the round is left to them. */
const MAX_SWAPS = 64

/** Buckets in a store, shared by all who use it. Their clocks should agree to well within a window. */
export function storedLimiter(store: RateLimitStore, clock: Clock): Limiter {
  const { get, set, increment, compareAndSet } = store
  if (compareAndSet !== undefined) return swapping(get, compareAndSet, clock)
  const oneByOne = swapping(get, serialisedSwap(store, get, set), clock)
  if (increment === undefined) return oneByOne
  const counted = counting(get, increment, clock)
  const by = (rule: RateLimitRule): Limiter => (rule.algorithm === 'token-bucket' ? oneByOne : counted)
  return {
    take: (key, rule, want) => by(rule).take(key, rule, want),
    giveBack: (key, rule, unused) => by(rule).giveBack(key, rule, unused),
  }
}

/** Reads a bucket, decides, and writes it if it is unchanged; otherwise decides again. */
function swapping(get: Get, swap: Swap, clock: Clock): Limiter {
  return {
    async take(key, rule, want) {
      for (let swaps = 0; swaps < MAX_SWAPS; swaps += 1) {
        const text = await get(key)
        const answer = takePermits(rule, readState(text), clock.now(), want)
        const permits: Permits = { ...answer, windowAt: answer.state.at }
        if (answer.granted === 0) return permits
        if (await swap(key, text, writeState(answer.state), answer.staleAfterMs)) return permits
      }
      return { granted: 0, retryAfterMs: 0, windowAt: 0 }
    },
    async giveBack(key, rule, unused) {
      for (let swaps = 0; swaps < MAX_SWAPS; swaps += 1) {
        const text = await get(key)
        const known = readState(text)
        if (known === undefined) return
        const { state, staleAfterMs } = takePermits(rule, known, clock.now(), 0)
        const next = returnPermits(rule, state, unused.granted, unused.windowAt)
        if (next === state || (await swap(key, text, writeState(next), staleAfterMs))) return
      }
    },
  }
}

/**
 * One counter per window. Counting first and reading afterwards is what makes it safe: of two that count together, one comes
 * second and sees both. What was counted in vain is taken off again.
 */
function counting(get: Get, increment: Increment, clock: Clock): Limiter {
  const counterOf = (key: string, rule: RateLimitRule, at: Ms) => `${key}:${Math.round(at / rule.window)}`
  return {
    async take(key, rule, want) {
      const now = clock.now()
      const { window } = rule
      const at = Math.floor(now / window) * window
      const counter = counterOf(key, rule, at)
      const ttl = Math.ceil(2 * window)
      const before =
        rule.algorithm === 'sliding-window' ? Number((await get(counterOf(key, rule, at - window))) ?? 0) : 0
      const used = (await increment(counter, want, ttl)) - want
      const { granted, retryAfterMs } = takePermits(rule, { at, used, before }, now, want)
      if (granted < want) await increment(counter, granted - want, ttl)
      return { granted, retryAfterMs, windowAt: at }
    },
    async giveBack(key, rule, unused) {
      await increment(counterOf(key, rule, unused.windowAt), -unused.granted, Math.ceil(2 * rule.window))
    },
  }
}

/** The last writer to each plain store, so that all limiters of this process on it take turns. */
const writesOfProcess = processWide('last-writes', () => new WeakMap<RateLimitStore, Promise<unknown>>())

/** A `compareAndSet` out of `get` and `set`, for stores without one: atomic within this process. */
function serialisedSwap(store: RateLimitStore, get: Get, set: RateLimitStore['set']): Swap {
  return (key, expected, next, ttl) => {
    const write = async (): Promise<boolean> => {
      if ((await get(key)) !== expected) return false
      await set(key, next, ttl)
      return true
    }
    const lastWrites = writesOfProcess()
    const written = (lastWrites.get(store) ?? Promise.resolve()).then(write, write)
    lastWrites.set(store, written)
    return written
  }
}

function writeState({ at, used, before }: RateLimitState): string {
  return JSON.stringify([at, used, before])
}

/** What is not ours, or was cut off, counts as an empty bucket. */
function readState(text: string | undefined): RateLimitState | undefined {
  if (text === undefined) return undefined
  try {
    const [at, used, before] = JSON.parse(text) as unknown[]
    if (typeof at !== 'number' || typeof used !== 'number' || typeof before !== 'number') return undefined
    return { at, used, before }
  } catch {
    return undefined
  }
}
