import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../../src/backends/memory/store.js'
import type { Doer } from '../../../src/core/doer/doer.js'
import { priorityDoer } from '../../../src/core/doer/priority.js'
import { rateLimitedDoer } from '../../../src/core/doer/rate/rate-limited.js'
import type {
  RateLimitedBacklogInfo,
  RateLimitedDoerOptions,
  RateTaskOptions,
} from '../../../src/core/doer/rate/rate-options.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { heldTasks, settled } from './held-tasks.js'

/** A doer on a fake clock, and the names of the tasks in the order in which they started. */
function limited(options: Partial<RateLimitedDoerOptions> = {}, clock = new FakeClock({ startAt: 5_000_000 })) {
  const doer = rateLimitedDoer({ limit: 2, window: 1000, clock, ...options })
  const started: string[] = []
  const give = (name: string, task?: RateTaskOptions) => doer.do(async () => void started.push(name), task)
  return { clock, doer, started, give }
}

describe('a rate-limited doer', () => {
  // S125
  it('limit 2, the clock standing still, five tasks: 2 run and available() is 0', async () => {
    let ran = 0
    const doer = rateLimitedDoer({ limit: 2, window: 100_000, now: () => 1000 })
    for (let n = 0; n < 5; n += 1)
      doer.do(async () => {
        ran += 1
      })
    expect(ran).toBe(0)
    await settled()
    expect(ran).toBe(2)
    expect(doer.available()).toBe(0)
  })

  it('lets limit start per window and the rest when their time comes; then no timer is left', async () => {
    const { clock, doer, started, give } = limited()
    for (const name of ['a', 'b', 'c', 'd', 'e']) give(name)
    await clock.advance(999)
    expect(started).toEqual(['a', 'b'])
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    expect(started).toEqual(['a', 'b', 'c', 'd'])
    await clock.advance(1000)
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e'])
    await doer.done()
    expect(clock.pending).toBe(0)
  })

  it('available() is what is left of limit after those that wait, but never more than the inner doer has', async () => {
    const { clock, doer, give } = limited({ limit: 3, doer: priorityDoer({ max: 1, buffer: 4 }) })
    expect(doer.available()).toBe(3)
    for (const name of ['a', 'b', 'c', 'd', 'e']) give(name)
    expect(doer.available()).toBe(0)
    await clock.settle()
    expect(doer.available()).toBe(1)
    await clock.advance(1000)
    expect(doer.available()).toBe(3)
    expect(limited({ limit: 100, doer: priorityDoer({ max: 2 }) }).doer.available()).toBe(4)
  })

  it('asks again no sooner than retryFloor', async () => {
    const { clock, started, give } = limited({ limit: 1, window: 10 })
    give('a')
    give('b')
    await clock.advance(49)
    expect(started).toEqual(['a'])
    await clock.advance(1)
    expect(started).toEqual(['a', 'b'])
    const quick = limited({ limit: 1, window: 10, retryFloor: 5 })
    quick.give('a')
    quick.give('b')
    await quick.clock.advance(10)
    expect(quick.started).toEqual(['a', 'b'])
  })

  it('lets the oldest start first, also among those given together', async () => {
    const { clock, started, give } = limited({ limit: 1 })
    give('new', { createdAt: 9 })
    give('old', { createdAt: 1 })
    give('none')
    give('odd', { createdAt: Number.NaN })
    give('middle', { createdAt: 5 })
    await clock.advance(4000)
    expect(started).toEqual(['old', 'middle', 'new', 'none', 'odd'])
  })

  it('spreads with a token bucket, and fades with a sliding window', async () => {
    const token = limited({ limit: 4, algorithm: 'token-bucket' })
    for (let n = 0; n < 8; n += 1) token.give(`${n}`)
    await token.clock.advance(0)
    expect(token.started).toHaveLength(4)
    await token.clock.advance(250)
    expect(token.started).toHaveLength(5)
    await token.clock.advance(750)
    expect(token.started).toHaveLength(8)

    const sliding = limited({ limit: 4, algorithm: 'sliding-window' })
    for (let n = 0; n < 8; n += 1) sliding.give(`${n}`)
    await sliding.clock.advance(1000)
    expect(sliding.started).toHaveLength(4)
    await sliding.clock.advance(250)
    expect(sliding.started).toHaveLength(5)
    await sliding.clock.advance(750)
    expect(sliding.started).toHaveLength(8)
  })

  it('a wall clock that is set changes nothing where the limit is local', async () => {
    const { clock, started, give } = limited({ limit: 1 })
    give('a')
    give('b')
    await clock.settle()
    clock.jump(-3_600_000)
    await clock.advance(1000)
    expect(started).toEqual(['a', 'b'])
    give('c')
    clock.jump(7_200_000)
    await clock.advance(999)
    expect(started).toEqual(['a', 'b'])
    await clock.advance(1)
    expect(started).toEqual(['a', 'b', 'c'])
  })

  it('done() waits for those that wait and those that run, but not for what others gave to the inner doer', async () => {
    const inner = priorityDoer({ max: 5 })
    const { task, end } = heldTasks()
    const foreign = heldTasks()
    inner.do(foreign.task('foreign'))
    const clock = new FakeClock()
    const doer = rateLimitedDoer({ limit: 1, window: 1000, clock, doer: inner })
    await doer.done()
    doer.do(task('a'))
    doer.do(task('b'))
    let isDone = false
    const wait = doer.done().then(() => {
      isDone = true
    })
    await clock.advance(0)
    await end('a')
    expect(isDone).toBe(false)
    await clock.advance(1000)
    expect(isDone).toBe(false)
    await end('b')
    await wait
    expect(clock.pending).toBe(0)
    await foreign.end('foreign')
  })

  it('swallows what tasks throw, and does not lose count', async () => {
    const { clock, doer } = limited({ limit: 10 })
    doer.do(() => {
      throw new Error('now')
    })
    doer.do(() => Promise.reject(new Error('later')))
    await clock.settle()
    await doer.done()
    expect(doer.available()).toBe(10)
  })

  it('a task runs in the context of its caller', async () => {
    const { clock, doer } = limited({ limit: 1, doer: priorityDoer({ max: 1 }) })
    const request = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    for (const who of ['one', 'two', 'three'])
      request.run(who, () => doer.do(async () => void seen.push(request.getStore())))
    await clock.advance(2000)
    expect(seen).toEqual(['one', 'two', 'three'])
  })
})

describe('an inner doer that is full', () => {
  it('holds tasks back until it says that it has room, and those are the oldest', async () => {
    const inner = priorityDoer({ max: 1, buffer: 0 })
    const { clock, doer, started, give } = limited({ limit: 10, doer: inner })
    const { task, end } = heldTasks()
    doer.do(task('first'), { createdAt: 0 })
    await clock.settle()
    give('new', { createdAt: 9000 })
    give('old', { createdAt: 1000 })
    await clock.settle()
    expect(started).toEqual([])
    expect(clock.pending).toBe(0)
    await end('first')
    await doer.done()
    expect(started).toEqual(['old', 'new'])
  })

  it('is asked every retryFloor where it does not say', async () => {
    const { available, do: give_, done } = priorityDoer({ max: 1, buffer: 0 })
    const inner: Doer = { available, do: give_, done }
    const { clock, doer, started, give } = limited({ limit: 10, doer: inner })
    expect(doer.onAvailable).toBeUndefined()
    const { task, end } = heldTasks()
    doer.do(task('first'))
    await clock.settle()
    give('a')
    await clock.settle()
    await end('first')
    await clock.advance(49)
    expect(started).toEqual([])
    await clock.advance(1)
    expect(started).toEqual(['a'])
    await doer.done()
    expect(clock.pending).toBe(0)
  })

  it('that throws keeps the task waiting, is reported, and is tried again', async () => {
    const errors: unknown[] = []
    let isBroken = true
    const inner = priorityDoer({ max: 1 })
    const { clock, doer, started, give } = limited({
      limit: 10,
      onError: (error) => errors.push(error),
      doer: {
        ...inner,
        do: (task, options) => {
          if (isBroken) throw new Error('inner')
          inner.do(task, options)
        },
      },
    })
    give('a')
    await clock.settle()
    expect(errors.map(String)).toEqual(['Error: inner'])
    isBroken = false
    await clock.advance(50)
    await doer.done()
    expect(started).toEqual(['a'])
  })

  it('gets the hints of a task', async () => {
    const hints: unknown[] = []
    const inner = priorityDoer({ max: 1 })
    const { clock, give } = limited({
      limit: 10,
      doer: { ...inner, do: (_, options) => hints.push(options) },
    })
    give('a', { group: 'g', priority: 3, createdAt: 7, groupLimit: 5 })
    give('b')
    await clock.settle()
    expect(hints).toEqual([{ group: 'g', priority: 3, createdAt: 7 }, { createdAt: 5_000_000 }])
  })
})

describe('onAvailable', () => {
  it('is called when available() rises from 0, because tasks were let through or the inner doer has room', async () => {
    const inner = priorityDoer({ max: 1, buffer: 0 })
    const { clock, doer } = limited({ limit: 2, doer: inner })
    const { task, end } = heldTasks()
    const woken: number[] = []
    const off = doer.onAvailable!(() => woken.push(doer.available()))
    doer.do(task('a'))
    await clock.settle()
    expect([doer.available(), woken]).toEqual([0, []])
    await end('a')
    expect([doer.available(), woken]).toEqual([1, [1]])
    off()

    const wide = limited({ limit: 2 })
    const wideWoken: number[] = []
    wide.doer.onAvailable!(() => wideWoken.push(wide.doer.available()))
    for (const name of ['a', 'b', 'c', 'd']) wide.give(name)
    await wide.clock.settle()
    expect([wide.doer.available(), wideWoken]).toEqual([0, []])
    await wide.clock.advance(1000)
    expect([wide.doer.available(), wideWoken]).toEqual([2, [2]])
    wide.give('e')
    await wide.clock.advance(1000)
    expect(wideWoken).toEqual([2])
    expect(woken).toEqual([1])
  })
})

describe('group limits', () => {
  it('a full group is skipped; the others and those without a group go on', async () => {
    const { clock, doer, started, give } = limited({ limit: 100, groupLimit: 1 })
    give('a1', { group: 'a' })
    give('a2', { group: 'a' })
    give('b1', { group: 'b' })
    give('none')
    give('b2', { group: 'b' })
    await clock.settle()
    expect(started).toEqual(['a1', 'b1', 'none'])
    await clock.advance(1000)
    expect(started).toEqual(['a1', 'b1', 'none', 'a2', 'b2'])
    await doer.done()
    expect(clock.pending).toBe(0)
  })

  it('the global limit counts those of all groups, and ends the round', async () => {
    const { clock, started, give } = limited({ limit: 2, groupLimit: 5 })
    for (const group of ['a', 'b', 'c', 'd']) give(group, { group })
    await clock.settle()
    expect(started).toEqual(['a', 'b'])
    await clock.advance(1000)
    expect(started).toEqual(['a', 'b', 'c', 'd'])
  })

  it('a task that the global limit holds back costs its group nothing, however often it is checked', async () => {
    const store = memoryStore()
    const clock = new FakeClock({ startAt: 5_000_000 })
    // The global bucket is emptied from outside for ten of its short windows; the group has two permits for an hour.
    const { doer, give, started } = limited(
      { limit: 1, window: 100, store: { ...store, increment: () => 99 }, groupStore: store },
      clock,
    )
    for (const name of ['a', 'b']) give(name, { group: 'g', groupLimit: 2, groupWindow: 3_600_000 })
    await clock.advance(1000)
    expect(started).toEqual([])
    expect(doer.available()).toBe(0)
    expect(JSON.parse(store.get('rl:doer:group:g') ?? '[0,0,0]')[1]).toBe(0)
  })

  it('a task may bring its own limit, window and algorithm', async () => {
    const { clock, started, give } = limited({ limit: 100, window: 1000 })
    const pro = { group: 'pro', groupLimit: 3, groupWindow: 500 }
    const free = { group: 'free', groupLimit: 1, groupAlgorithm: 'token-bucket' } as const
    for (let n = 0; n < 4; n += 1) {
      give(`pro${n}`, pro)
      give(`free${n}`, free)
    }
    await clock.settle()
    expect(started).toEqual(['pro0', 'free0', 'pro1', 'pro2'])
    await clock.advance(500)
    expect(started.slice(4)).toEqual(['pro3'])
    await clock.advance(500)
    expect(started.slice(5)).toEqual(['free1'])
    expect(() => give('x', { group: 'g', groupLimit: 0 })).toThrow(/rateLimitedDoer\.groupLimit/)
    expect(() => give('x', { group: 'g', groupLimit: 1, groupWindow: 0 })).toThrow(/rateLimitedDoer\.groupWindow/)
  })

  it('one timer waits for whichever comes first', async () => {
    const { clock, started, give, doer } = limited({ limit: 100 })
    const slow = { group: 'slow', groupLimit: 1, groupWindow: 5000 }
    const fast = { group: 'fast', groupLimit: 1, groupWindow: 500 }
    for (const task of [slow, slow, fast, fast]) {
      give(task.group, task)
      await clock.settle()
      expect(clock.pending).toBeLessThanOrEqual(1)
    }
    await clock.advance(500)
    expect([started, clock.pending]).toEqual([['slow', 'fast', 'fast'], 1])
    await clock.advance(4500)
    await doer.done()
    expect([started.length, clock.pending]).toEqual([4, 0])
  })

  it('groupKey says which group a task is of, and that it is of none', async () => {
    const { clock, started, give } = limited({
      limit: 100,
      groupLimit: 1,
      groupKey: ({ group }) => (group === 'vip' ? undefined : 'everybody'),
    })
    give('a', { group: 'x' })
    give('b', { group: 'y' })
    give('v1', { group: 'vip' })
    give('v2', { group: 'vip' })
    await clock.settle()
    expect(started).toEqual(['a', 'v1', 'v2'])
  })

  it('ten thousand waiting tasks of a full group cost the others nothing', async () => {
    const asked: string[] = []
    const store = memoryStore()
    const clock = new FakeClock({ startAt: 5_000_000 })
    const { started, give } = limited(
      {
        limit: 1_000_000,
        groupLimit: 1,
        store: {
          ...store,
          get: (key) => {
            asked.push(key)
            return store.get(key)
          },
          compareAndSet: store.compareAndSet,
        },
      },
      clock,
    )
    for (let n = 0; n < 10_000; n += 1) give(`hot${n}`, { group: 'hot' })
    await clock.settle()
    expect(started).toEqual(['hot0'])
    asked.length = 0
    give('cool', { group: 'cool' })
    await clock.settle()
    expect(started).toEqual(['hot0', 'cool'])
    expect(asked).toEqual(['rl:doer:group:cool', 'rl:doer'])
  })
})

describe('a key from the task', () => {
  it('gives each bucket its own limit, and a full one holds up no other', async () => {
    const { clock, started, give } = limited({ limit: 1, key: ({ group }) => group ?? 'x' })
    give('x')
    give('a1', { group: 'a' })
    give('a2', { group: 'a' })
    give('b', { group: 'b' })
    await clock.settle()
    expect(started).toEqual(['x', 'a1', 'b'])
    await clock.advance(1000)
    expect(started).toEqual(['x', 'a1', 'b', 'a2'])
  })

  it('that is no string is refused where the task is given', () => {
    const { give } = limited({ key: (() => 5) as never })
    expect(() => give('a')).toThrow(/rateLimitedDoer\.key must be a function that returns a string, got 5/)
  })
})

describe('a limit in a store', () => {
  it('is shared by all users of the store and the key', async () => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const store = memoryStore({ clock })
    const fleet = [1, 2, 3].map(() => limited({ limit: 4, store }, clock))
    const elsewhere = limited({ limit: 4, store, key: 'other' }, clock)
    for (const { give } of [...fleet, elsewhere]) for (const name of ['a', 'b', 'c']) give(name)
    await clock.settle()
    const count = () => fleet.reduce((sum, { started }) => sum + started.length, 0)
    expect(count()).toBe(4)
    expect(elsewhere.started).toHaveLength(3)
    await clock.advance(1000)
    expect(count()).toBe(8)
    await clock.advance(1000)
    expect(count()).toBe(9)
    expect(clock.pending).toBe(0)
  })

  it('takes permits for all waiting tasks together: two calls for a hundred', async () => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const store = memoryStore({ clock })
    let calls = 0
    const counted = <A extends unknown[], R>(call: (...args: A) => R) => {
      return async (...args: A): Promise<R> => {
        calls += 1
        return call(...args)
      }
    }
    const { started, give } = limited(
      {
        limit: 1000,
        store: {
          get: counted(store.get),
          set: counted(store.set),
          setIfNotExists: counted(store.setIfNotExists),
          compareAndSet: counted(store.compareAndSet),
        },
      },
      clock,
    )
    for (let n = 0; n < 100; n += 1) give(`${n}`)
    await clock.settle()
    expect(started).toHaveLength(100)
    expect(calls).toBe(2)
  })

  it('uses keys that begin with rl:, or with another prefix', async () => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const store = memoryStore({ clock })
    const { give } = limited({ store, key: 'mail', groupLimit: 2 }, clock)
    limited({ store, prefix: '' }, clock).give('b')
    give('a', { group: 'u1' })
    await clock.settle()
    const used = ['rl:mail', 'rl:mail:group:u1', 'doer'].map((key) => JSON.parse(store.get(key) ?? '[]')[1])
    expect(used).toEqual([1, 1, 1])
  })

  it('groups may be counted in another one', async () => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const [store, groupStore] = [memoryStore({ clock }), memoryStore({ clock })]
    const { give } = limited({ store, groupStore, groupLimit: 2 }, clock)
    give('a', { group: 'g' })
    await clock.settle()
    expect([store.get('rl:doer:group:g'), groupStore.get('rl:doer')]).toEqual([undefined, undefined])
    expect(groupStore.get('rl:doer:group:g')).toBeDefined()
  })

  it('that fails keeps the tasks, is reported, and is asked again less and less often', async () => {
    const clock = new FakeClock({ startAt: 5_000_000 })
    const store = memoryStore({ clock })
    const failedAt: number[] = []
    let isDown = true
    const { doer, started, give } = limited(
      {
        store: {
          ...store,
          increment: (...args) => {
            if (isDown) throw new Error('down')
            return store.increment(...args)
          },
        },
        onError: () => {
          failedAt.push(clock.monotonic())
          throw new Error('a reporter that throws')
        },
      },
      clock,
    )
    give('a')
    await clock.advance(350)
    expect(failedAt).toEqual([0, 50, 150, 350])
    expect([started, doer.available()]).toEqual([[], 1])
    isDown = false
    await clock.advance(400)
    expect(started).toEqual(['a'])
    await doer.done()
    expect(clock.pending).toBe(0)
    isDown = true
    failedAt.length = 0
    const at = clock.monotonic()
    give('b')
    await clock.advance(50)
    expect(failedAt).toEqual([at, at + 50])
  })

  it('lets no more than limit start in all, whatever the fleet is given and when', async () => {
    const given = fc.record({
      who: fc.nat(),
      group: fc.constantFrom('a', 'b', undefined),
      wait: fc.integer({ min: 0, max: 400 }),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 3 }),
        fc.array(given, { maxLength: 15 }),
        async (processes, limit, groupLimit, tasks) => {
          const clock = new FakeClock({ startAt: 5_000_000, quietTurns: 1 })
          const store = memoryStore({ clock })
          const starts: { readonly at: number; readonly group: string | undefined }[] = []
          const doers = Array.from({ length: processes }, () =>
            rateLimitedDoer({ limit, window: 1000, groupLimit, algorithm: 'token-bucket', store, clock }),
          )
          for (const { who, group, wait } of tasks) {
            const note = async () => void starts.push({ at: clock.monotonic(), group })
            doers[who % processes]!.do(note, group === undefined ? {} : { group })
            await clock.advance(wait)
          }
          await clock.runUntilIdle()
          await Promise.all(doers.map((doer) => doer.done()))
          expect(starts).toHaveLength(tasks.length)
          expect(clock.pending).toBe(0)
          const excess = (times: readonly number[], most: number) =>
            times.some((from, first) =>
              times.slice(first).some((to, more) => more + 1 > most + (most * (to - from)) / 1000 + 1e-3),
            )
          expect(
            excess(
              starts.map(({ at }) => at),
              limit,
            ),
          ).toBe(false)
          for (const group of ['a', 'b'])
            expect(
              excess(
                starts.filter((one) => one.group === group).map(({ at }) => at),
                groupLimit,
              ),
            ).toBe(false)
        },
      ),
      { numRuns: 1000 },
    )
  }, 120_000)
})

describe('tasks that keep waiting for the limit', () => {
  it('are reported after backlogAfterMs, and again every backlogEveryMs', async () => {
    const seen: RateLimitedBacklogInfo[] = []
    const { clock, give, doer } = limited({
      limit: 1,
      backlogAfterMs: 300,
      backlogEveryMs: 500,
      onBacklog: (info) => seen.push(info),
    })
    give('a')
    await clock.advance(1000)
    expect(seen).toEqual([])
    for (const name of ['b', 'c', 'd']) give(name)
    await clock.advance(900)
    expect(seen).toEqual([
      { pending: 2, nonEmptyForMs: 300 },
      { pending: 2, nonEmptyForMs: 800 },
    ])
    await clock.advance(2000)
    await doer.done()
    expect(clock.pending).toBe(0)
  })

  it('are reported while a store does not answer at all', async () => {
    const seen: RateLimitedBacklogInfo[] = []
    const { clock, give } = limited({
      store: { ...memoryStore(), increment: () => new Promise<number>(() => {}) },
      backlogAfterMs: 300,
      onBacklog: (info) => seen.push(info),
    })
    give('a')
    await clock.advance(300)
    expect(seen).toEqual([{ pending: 1, nonEmptyForMs: 300 }])
  })
})

describe('bad options', () => {
  it('are refused by name', () => {
    const bad = (options: object) => () =>
      rateLimitedDoer({ limit: 1, window: 1, ...options } as RateLimitedDoerOptions)
    expect(() => rateLimitedDoer({} as RateLimitedDoerOptions)).toThrow(/rateLimitedDoer\.limit is required/)
    expect(bad({ limit: 0 })).toThrow(/rateLimitedDoer\.limit must be an integer >= 1, got 0/)
    expect(bad({ window: 0 })).toThrow(/rateLimitedDoer\.window must be a finite number > 0, got 0/)
    expect(bad({ algorithm: 'leaky' })).toThrow(/rateLimitedDoer\.algorithm must be 'fixed-window' or/)
    expect(bad({ key: '' })).toThrow(/rateLimitedDoer\.key/)
    expect(bad({ groupLimit: 1.5 })).toThrow(/rateLimitedDoer\.groupLimit/)
    expect(bad({ groupKey: 'g' })).toThrow(/rateLimitedDoer\.groupKey/)
    expect(bad({ store: {} })).toThrow(/rateLimitedDoer\.store must be a store with get and set/)
    expect(bad({ groupStore: 5 })).toThrow(/rateLimitedDoer\.groupStore/)
    expect(bad({ retryFloor: 0 })).toThrow(/rateLimitedDoer\.retryFloor/)
    expect(bad({ doer: {} })).toThrow(/rateLimitedDoer\.doer must be a doer/)
    expect(bad({ onError: 5 })).toThrow(/rateLimitedDoer\.onError/)
    expect(bad({ onBacklog: () => {} })).toThrow(/rateLimitedDoer\.backlogAfterMs/)
    expect(bad({ limits: 5 })).toThrow(/Did you mean "limit"/)
  })
})
