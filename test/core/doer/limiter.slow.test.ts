import fc from 'fast-check'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { memoryStore } from '../../../src/backends/memory/store.js'
import { type Limiter, localLimiter } from '../../../src/core/doer/rate/limiter.js'
import { RATE_LIMIT_ALGORITHMS, type RateLimitRule } from '../../../src/core/doer/rate/rate-limit.js'
import { type RateLimitStore, storedLimiter } from '../../../src/core/doer/rate/stored-limiter.js'
import type { Store } from '../../../src/ports/ports.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { seededRandom } from '../../../src/testing/seeded-random.js'

type Power = 'compareAndSet' | 'increment' | 'neither'

/** A store as a process far away sees it: every call takes a while, and others come in between. */
function remoteStore(clock: FakeClock, power: Power, hop: () => Promise<void> = async () => {}): RateLimitStore {
  const near = memoryStore({ clock })
  const far = <A extends unknown[], R>(call: (...args: A) => R) => {
    return async (...args: A): Promise<R> => {
      await hop()
      const answer = call(...args)
      await hop()
      return answer
    }
  }
  return {
    get: far(near.get),
    set: far(near.set),
    setIfNotExists: far(near.setIfNotExists),
    ...(power !== 'neither' && { increment: far(near.increment) }),
    ...(power === 'compareAndSet' && { compareAndSet: far(near.compareAndSet) }),
  }
}

const rule = (algorithm: RateLimitRule['algorithm'], limit = 3): RateLimitRule => ({ algorithm, limit, window: 1000 })

const kinds: readonly (readonly [string, (clock: FakeClock) => Limiter])[] = [
  ['in this process', (clock) => localLimiter(clock)],
  ['by compareAndSet', (clock) => storedLimiter(remoteStore(clock, 'compareAndSet'), clock)],
  ['by increment', (clock) => storedLimiter(remoteStore(clock, 'increment'), clock)],
  ['by get and set', (clock) => storedLimiter(remoteStore(clock, 'neither'), clock)],
  ['by the memory store', (clock) => storedLimiter(memoryStore({ clock }), clock)],
  ['by a spread of the memory store', (clock) => storedLimiter({ ...memoryStore({ clock }) }, clock)],
]

describe.each(kinds)('a limit kept %s', (_, make) => {
  it.each(RATE_LIMIT_ALGORITHMS)('%s: grants limit, refuses, and grants again when it said so', async (algorithm) => {
    // A border of windows, so that those counted from the epoch and those counted from the first start are the same.
    const clock = new FakeClock({ startAt: 5_000_000 })
    const limiter = make(clock)
    expect(await limiter.take('k', rule(algorithm), 2)).toMatchObject({ granted: 2, retryAfterMs: 0 })
    const { granted, retryAfterMs } = await limiter.take('k', rule(algorithm), 2)
    expect(granted).toBe(1)
    expect((await limiter.take('k', rule(algorithm), 1)).granted).toBe(0)
    expect((await limiter.take('other', rule(algorithm), 1)).granted).toBe(1)
    await clock.advance(retryAfterMs - 1)
    expect((await limiter.take('k', rule(algorithm), 1)).granted).toBe(0)
    await clock.advance(1)
    expect((await limiter.take('k', rule(algorithm), 1)).granted).toBe(1)
  })

  it.each(RATE_LIMIT_ALGORITHMS)('%s: takes back what was not used', async (algorithm) => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const limiter = make(clock)
    const { windowAt } = await limiter.take('k', rule(algorithm), 3)
    await limiter.giveBack('k', rule(algorithm), { granted: 2, windowAt })
    await limiter.giveBack('never seen', rule(algorithm), { granted: 0, windowAt })
    expect((await limiter.take('k', rule(algorithm), 3)).granted).toBe(2)
  })
})

describe('many processes on one store', () => {
  const shared = [
    ...RATE_LIMIT_ALGORITHMS.map((algorithm) => ['compareAndSet', algorithm] as const),
    ['increment', 'fixed-window'] as const,
    ['increment', 'sliding-window'] as const,
    // Within one process every algorithm is exact on every store.
    ['increment', 'token-bucket'] as const,
    ...RATE_LIMIT_ALGORITHMS.map((algorithm) => ['neither', algorithm] as const),
  ]

  it.each(shared)(
    'on a store with %s, %s is exact however their calls mix',
    async (power, algorithm) => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 6 }),
          fc.integer({ min: 1, max: 9 }),
          fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 }),
          fc.integer(),
          async (processes, limit, wants, seed) => {
            const clock = new FakeClock({ startAt: 5_000_000 })
            const random = seededRandom(seed)
            const hop = async () => {
              for (let turns = Math.floor(random() * 4); turns > 0; turns -= 1) await Promise.resolve()
            }
            const store = remoteStore(clock, power, hop)
            const limiters = Array.from({ length: processes }, () => storedLimiter(store, clock))
            const answers = await Promise.all(
              wants.map((want, at) => limiters[at % processes]!.take('k', rule(algorithm, limit), want)),
            )
            const granted = answers.reduce((sum, answer) => sum + answer.granted, 0)
            const wanted = wants.reduce((sum, want) => sum + want, 0)
            expect(granted).toBe(Math.min(limit, wanted))
          },
        ),
        { numRuns: 1000 },
      )
    },
    60_000,
  )
})

describe('what is kept', () => {
  it('lies under the given key, expires with its window, and is not confused by what others wrote there', async () => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const store = memoryStore({ clock })
    const limiter = storedLimiter(store, clock)
    for (const junk of ['', 'x', '5', '[]', '["a",1,2]', '{"at":1}', 'null']) {
      store.set('rl:k', junk)
      expect((await limiter.take('rl:k', rule('fixed-window'), 9)).granted).toBe(3)
    }
    expect(store.get('rl:k')).toBeDefined()
    await clock.advance(1000)
    expect(store.get('rl:k')).toBeUndefined()
  })

  it('in this process is bounded, however many keys there ever were', async () => {
    const clock = new FakeClock()
    const buckets = new Map()
    const limiter = localLimiter(clock, buckets)
    for (let n = 0; n < 100_000; n += 1) {
      await limiter.take(`key ${n}`, { algorithm: 'token-bucket', limit: 5, window: 10 }, 1)
      if (n % 1000 === 0) await clock.advance(10)
    }
    expect(buckets.size).toBeLessThan(3000)
    expect(buckets.has('key 99999')).toBe(true)
  })

  it('the Store port has all that a limit needs', () => {
    expectTypeOf<Store>().toExtend<RateLimitStore>()
  })

  it('a store that fails, fails the call and nothing after it', async () => {
    const clock = new FakeClock()
    const store = remoteStore(clock, 'neither')
    let isDown = true
    const limiter = storedLimiter(
      {
        ...store,
        set: (...args) => {
          if (isDown) throw new Error('down')
          return store.set(...args)
        },
      },
      clock,
    )
    await expect(limiter.take('k', rule('fixed-window'), 1)).rejects.toThrow('down')
    isDown = false
    expect((await limiter.take('k', rule('fixed-window'), 1)).granted).toBe(1)
  })
})
