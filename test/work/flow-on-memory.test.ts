import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/core/time/clock.js'
import { createWork, defineBatchWork, defineWork, priorityDoer, unlimitedDoer } from '../../src/index.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import { tapped } from './controls/tapped.js'
import { NEVER, outcomes } from './flow-tools.js'
import { gate, mortal, world } from './support.js'

describe('options of how much runs', () => {
  const noop = defineWork('noop', (_: null, ctx) => ctx.void())

  it('are refused where they make no sense, with a reason', () => {
    const bad = (options: object) => () => createWork({ autoStart: false, work: [noop], ...options })
    expect(bad({ concurrency: 0 })).toThrow(/createWork\.concurrency/)
    expect(bad({ concurrency: 2, doer: unlimitedDoer() })).toThrow(/left out where a doer is given/)
    expect(bad({ visibility: 1_000, heartbeat: 1_000 })).toThrow(/less than visibility, which is 1000/)
    expect(bad({ heartbeat: 60_000 })).toThrow(/createWork\.heartbeat/)
    const doer = priorityDoer({ max: 1 })
    expect(() => defineWork('x', () => undefined as never, { concurrency: 1, doer })).toThrow(/left out/)
    expect(() => defineWork('x', () => undefined as never, { concurrency: 1.5 })).toThrow(/concurrency/)
  })
})

describe('a backend that cannot be written', () => {
  const away = (isAway: () => boolean) =>
    outcomes((real, batch) => (isAway() ? Promise.reject(new Error('away')) : real(batch)))

  it('is tried again with the same outcomes, reported once, and no handler runs twice', async () => {
    let isAway = true
    let runs = 0
    const noop = defineWork('noop', (n: number, ctx) => {
      runs += 1
      return ctx.result(n)
    })
    const here = world(
      'native',
      { work: [noop], visibility: 1_000, heartbeat: 300 },
      away(() => isAway),
    )
    const results = Array.from({ length: 20 }, (_, n) => here.w.enqueue(noop(n)).result())
    // Ten leases long: the items come back to this very process, whose outcomes are not written yet.
    await here.clock.advance(10_000)
    isAway = false
    expect(await here.until(Promise.all(results))).toEqual(Array.from({ length: 20 }, (_, n) => n))

    expect(runs).toBe(20)
    expect(here.errors.map(({ error }) => (error as Error).message)).toEqual(['away'])
  })

  it('gets the outcomes when it is back although their leases were over, and no handler runs twice', async () => {
    let isAway = true
    let runs = 0
    const noop = defineWork('noop', (n: number, ctx) => {
      runs += 1
      return ctx.result(n)
    })
    const cut = tapped((ledger) => ({
      commit: (batch) =>
        isAway && batch[0]?.guard.by === 'lease' ? Promise.reject(new Error('away')) : ledger.commit(batch),
      extend: (held, ms, me) =>
        isAway && held.length > 0 ? Promise.reject(new Error('away')) : ledger.extend(held, ms, me),
    }))
    const here = world('native', { work: [noop], visibility: 1_000, heartbeat: 300 }, cut)
    const results = Array.from({ length: 20 }, (_, n) => here.w.enqueue(noop(n)).result())
    await here.clock.advance(10_000)
    isAway = false
    expect(await here.until(Promise.all(results))).toEqual(Array.from({ length: 20 }, (_, n) => n))
    expect(runs).toBe(20)
  })

  it('gets the outcomes of a system that was stopped meanwhile, and they are not run again after a new start', async () => {
    let isAway = true
    let runs = 0
    const noop = defineWork('noop', (_: null, ctx) => {
      runs += 1
      return ctx.result('done')
    })
    const here = world(
      'native',
      { work: [noop], visibility: 1_000, heartbeat: 300, stopDrain: 100 },
      away(() => isAway),
    )
    const handle = here.w.enqueue(noop(null))
    await here.clock.advance(50)
    await here.until(here.w.stop())
    await here.clock.advance(5_000)
    here.w.start()
    await here.clock.advance(5_000)
    isAway = false

    expect(await here.until(handle.result())).toBe('done')
    expect(runs).toBe(1)
  })
})

describe('a lease whose claim took long', () => {
  it('is extended in time, though it was old when it came', async () => {
    let runs = 0
    const lost: unknown[] = []
    const slow = defineWork('slow', async (_: null, ctx) => {
      runs += 1
      ctx.signal.addEventListener('abort', () => lost.push(ctx.signal.reason))
      await here.clock.sleep(6_000)
      return ctx.void()
    })
    const here = world(
      'native',
      { work: [slow], visibility: 2_000, heartbeat: 667 },
      tapped((ledger) => ({
        claim: async (ask) => {
          const reply = await ledger.claim(ask)
          await here.clock.sleep(1_300)
          return reply
        },
        extend: async (held, ms, me) => {
          const words = await ledger.extend(held, ms, me)
          await here.clock.sleep(200)
          return words
        },
      })),
    )
    const done = here.w.enqueue(slow(null)).result()
    await here.until(done, 20_000)

    expect({ runs, lost, errors: here.errors }).toEqual({ runs: 1, lost: [], errors: [] })
  })
})

describe('a lease that cannot be extended', () => {
  it('aborts its handler when it ends, and not a heartbeat later', async () => {
    let lostAt: number | undefined
    const slow = defineWork('slow', (_: null, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        lostAt = here.clock.now()
      })
      return NEVER
    })
    const here = world(
      'native',
      { work: [slow], visibility: 3_000, heartbeat: 1_000, stopDrain: 0 },
      tapped(() => ({ extend: () => NEVER })),
    )
    const startAt = here.clock.now()
    await here.w.enqueue(slow(null)).accepted()
    await here.clock.advance(3_500)

    expect(lostAt! - startAt).toBe(3_000)
    // The beat that hung is given up and reported, once.
    expect(here.errors.filter(({ error }) => (error as { code?: string }).code === 'HEARTBEAT_TIMEOUT')).toHaveLength(1)
  })

  it('does not keep others from their heartbeats', async () => {
    let hung: string | undefined
    const lost: string[] = []
    const slow = defineWork('slow', (name: string, ctx) => {
      ctx.signal.addEventListener('abort', () => lost.push(name))
      return NEVER
    })
    const here = world(
      'native',
      { work: [slow], visibility: 3_000, heartbeat: 1_000, stopDrain: 0 },
      tapped((ledger) => ({
        extend: (held, ms, me) => (held.some(({ lease }) => lease.id === hung) ? NEVER : ledger.extend(held, ms, me)),
      })),
    )
    const first = here.w.enqueue(slow('first'))
    await first.accepted()
    hung = first.id
    await here.clock.advance(1_100)
    await here.w.enqueue(slow('second')).accepted()
    await here.clock.advance(10_000)

    expect(lost).toEqual(['first'])
  })
})

describe('what a handler throws', () => {
  it.each([
    [
      'a revoked proxy',
      () => {
        const { proxy, revoke } = Proxy.revocable({}, {})
        revoke()
        return proxy
      },
    ],
    [
      'getters that throw',
      () =>
        Object.defineProperties(
          {},
          Object.fromEntries(
            ['message', 'name', 'stack', 'code', 'status', 'cause', 'constructor'].map((key) => [
              key,
              {
                get: () => {
                  throw new Error('no')
                },
              },
            ]),
          ),
        ),
    ],
  ] as const)('is a failure like any other: %s', async (_name, made) => {
    let runs = 0
    const hostile = defineWork(
      'hostile',
      () => {
        runs += 1
        throw made()
      },
      { retry: { attempts: 2, base: 10 } },
    )
    const here = world('native', { work: [hostile] })
    await expect(here.until(here.w.enqueue(hostile({})).result())).rejects.toThrow()
    expect(runs).toBe(2)
  })
})

describe('a handler that has added to the value of its group', () => {
  it('is not run again while that value cannot be read', async () => {
    let isAway = true
    let runs = 0
    const add = defineWork('add', (n: number, ctx) => {
      runs += 1
      return ctx.result(n, { append: (sum: number | undefined) => (sum ?? 0) + n })
    })
    const hanging = tapped((ledger) => ({
      groups: (ids) => (isAway ? NEVER : ledger.groups(ids)),
      commit: (batch) =>
        isAway && batch[0]?.guard.by === 'lease' ? Promise.reject(new Error('away')) : ledger.commit(batch),
      extend: (beats, ms, me) =>
        isAway && beats.length > 0 ? Promise.reject(new Error('away')) : ledger.extend(beats, ms, me),
    }))
    const here = world('native', { work: [add], visibility: 1_000, heartbeat: 300 }, hanging)
    const handle = here.w.enqueue(add(5))
    const sum = handle.group()
    await here.clock.advance(5_000)
    isAway = false

    expect(await here.until(sum)).toBe(5)
    expect(runs).toBe(1)
  })
})

describe('a process that was cut off for longer than its leases', () => {
  it('does not run again what it has run, where another process has only brought the leases back', async () => {
    const runs: string[] = []
    let isCut = false
    const job = defineWork('job', async (n: number, ctx) => {
      runs.push(`here ${n}`)
      await here.clock.sleep(10)
      return ctx.result(n)
    })
    const elsewhere = defineWork('job', async (n: number) => {
      runs.push(`there ${n}`)
      return NEVER
    })
    const orCut = <T>(go: () => Promise<T>) => (isCut ? Promise.reject(new Error('cut')) : go())
    const cut = tapped((ledger) => ({
      extend: (...asked) => orCut(() => ledger.extend(...asked)),
      commit: (batch) => orCut(() => ledger.commit(batch)),
      claim: (ask) => orCut(() => ledger.claim(ask)),
    }))
    const lives = { visibility: 1_000, heartbeat: 300, stopDrain: 0 }
    const here = world('native', { ...lives, work: [job], autoStart: false }, cut)
    await here.w.enqueueMany(Array.from({ length: 32 }, (_, n) => job(n)))
    here.w.start()
    await here.clock.advance(5)
    isCut = true
    await here.clock.advance(2_000)
    // It has one place, and its claim brings back all leases that are over.
    here.another({ ...lives, ...here.mem, backend: here.mem, work: [elsewhere], concurrency: 1 } as never)
    await here.clock.advance(100)
    isCut = false
    await here.clock.advance(5_000)

    expect(runs.filter((run) => run.startsWith('here'))).toHaveLength(32)
    expect(runs.filter((run) => run.startsWith('there'))).toHaveLength(1)
    expect(await here.w.list({ status: 'success' })).toHaveLength(31)
  })
})

describe('items that wait on probation', () => {
  it('do not start once the system stops, and are returned', async () => {
    let begun = 0
    const suspected = tapped((ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        return { ...reply, items: reply.items.map((item) => ({ ...item, lapses: 1, crashes: 1 })) }
      },
    }))
    const job = defineWork('job', async (_: null, ctx) => {
      begun += 1
      await here.clock.sleep(60_000, ctx.signal)
      return ctx.void()
    })
    const here = world('native', { work: [job], visibility: 60_000, heartbeat: 20_000, stopDrain: 100 }, suspected)
    const handles = await here.w.enqueueMany(Array.from({ length: 10 }, () => job(null)))
    await here.clock.advance(20)
    await here.until(here.w.stop())

    expect(begun).toBe(1)
    const states = await here.w.states(handles.map(({ id }) => id))
    expect(states.map((state) => state?.status)).toEqual(handles.map(() => 'pending'))
  })

  it('report a backend that cannot record their start once', async () => {
    let isAway = true
    const failing = tapped((ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        return { ...reply, items: reply.items.map((item) => ({ ...item, lapses: 1 })) }
      },
      extend: (beats, ms, me) =>
        isAway && beats.length > 0 ? Promise.reject(new Error('away')) : ledger.extend(beats, ms, me),
    }))
    const job = defineWork('job', (n: number, ctx) => ctx.result(n))
    const here = world('native', { work: [job] }, failing)
    const results = Array.from({ length: 30 }, (_, n) => here.w.enqueue(job(n)).result())
    await here.clock.advance(1_000)
    expect(here.errors).toHaveLength(1)
    isAway = false
    await here.until(Promise.all(results))
    expect(here.errors).toHaveLength(1)
  })
})

describe('a run that fails after its lease was lost', () => {
  it('counts for nothing: the item runs again in the same attempt, also in the same process', async () => {
    const attempts: number[] = []
    let isLost = false
    const job = defineWork(
      'job',
      async (_: null, ctx) => {
        attempts.push(ctx.attempt)
        if (attempts.length > 1) return ctx.result('done')
        // Long enough for the item to have come back, and to wait for this very place.
        await here.clock.sleep(2_000)
        throw new Error('it did not obey its signal, and failed')
      },
      { retry: { attempts: 2, base: 10 } },
    )
    const losing = tapped((ledger) => ({
      extend: async (beats, ms, me) => {
        const words = await ledger.extend(beats, ms, me)
        if (isLost || beats.length === 0) return words
        isLost = true
        return beats.map(() => 'lost' as const)
      },
    }))
    const doer = priorityDoer({ max: 1, buffer: 5 })
    const here = world('native', { work: [job], visibility: 1_000, heartbeat: 300, doer }, losing)

    expect(await here.until(here.w.enqueue(job(null)).result())).toBe('done')
    expect(attempts).toEqual([1, 1])
  })
})

describe('an item whose process died', () => {
  it('has not crashed while it only waited for its turn, or had ended', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (n: number, ctx) => {
      if (n > 0) return ctx.void()
      await hold.promise
      return ctx.void()
    })
    const lives = { work: [slow], visibility: 1_000, heartbeat: 300, stopDrain: 0 }
    const unwritten = outcomes(() => NEVER)
    const here = world('native', { ...lives, autoStart: false }, unwritten)
    const handles = await here.w.enqueueMany([1, 2, 0, 3, 4, 5].map((n) => slow(n)))
    for (let death = 0; death < 3; death += 1) {
      const life = mortal(here.clock)
      // One place, and the rest waits beside it.
      here.another({ ...lives, clock: life.clock, doer: priorityDoer({ max: 1, buffer: 5 }) })
      await here.clock.advance(2_500)
      life.die()
      await here.clock.advance(2_000)
    }
    const found = ownedBy(here.mem, [])
    const views = 'open' in found ? await found.open({ prefix: 'work:' }).read(handles.map(({ id }) => id)) : []
    // The third death is counted by the next claim, which is not made.
    expect(views.map((view) => view?.lapses)).toEqual([2, 2, 2, 2, 2, 2])
    expect(views.map((view) => view?.crashes)).toEqual([0, 0, 2, 0, 0, 0])
    hold.open()
  })

  it('does not run on an answer that comes after its lease, where the process was suspended meanwhile', async () => {
    const fences: number[] = []
    let stoodStillMs = 0
    const job = defineWork('job', async (_: null, ctx) => {
      fences.push(ctx.fence)
      if (fences.length === 1) await NEVER
      return ctx.result('done')
    })
    const lives = { work: [job], visibility: 1_000, heartbeat: 300, stopDrain: 0 }
    const markedLate = tapped((ledger) => ({
      extend: async (held, ms, me) => {
        const words = await ledger.extend(held, ms, me)
        // Stopped, as by SIGSTOP: no timer fires, and the answer is read when the lease is over.
        if (fences.length === 1 && stoodStillMs === 0 && held.some(({ running }) => running)) stoodStillMs = 1_500
        return words
      },
    }))
    const here = world('native', { ...lives, autoStart: false }, markedLate)
    const result = here.w.enqueue(job(null)).result()
    const life = mortal(here.clock)
    here.another({ ...lives, clock: life.clock })
    await here.clock.settle()
    life.die()
    const { now, after, sleep } = here.clock
    const stopped: Clock = { now, after, sleep, monotonic: () => here.clock.monotonic() + stoodStillMs }
    here.another({ ...lives, clock: stopped })

    expect(await here.until(result)).toBe('done')
    // Its second lease was over when its answer was read.
    expect(fences).toEqual([1, 3])
  })

  it.each([
    ['whose mark was not taken does not run', 'unknown'],
    ['is marked after a heartbeat that was under way', 'slow'],
  ] as const)('%s', async (_name, how) => {
    let deaths = 0
    let isOdd = true
    const said: string[] = []
    const job = defineWork('job', async (_: null, ctx) => {
      if (deaths === 0) await NEVER
      said.push('runs')
      return ctx.result('done')
    })
    // On probation for as long as a heartbeat, and before the other.
    const first = defineWork('first', async (_: null, ctx) => {
      if (deaths === 0) await NEVER
      await here.clock.sleep(400)
      return ctx.void()
    })
    const lives = { work: [job, first], visibility: 1_000, heartbeat: 300, stopDrain: 0 }
    const odd = tapped((ledger) => ({
      extend: async (beats, ms, me) => {
        const mine = deaths === 0 ? undefined : beats.find(({ lease }) => lease.id === handle.id)
        if (mine !== undefined && how === 'unknown' && isOdd && mine.running) {
          isOdd = false
          said.push('unknown')
          return beats.map(() => 'unknown' as const)
        }
        // Under way when the item leaves probation, and answered 100 ms later.
        if (mine !== undefined && how === 'slow' && !mine.running) await here.clock.sleep(100)
        if (mine !== undefined) said.push(mine.running ? 'marked' : 'beat')
        return ledger.extend(beats, ms, me)
      },
    }))
    const here = world('native', { ...lives, autoStart: false }, odd)
    await here.w.enqueue(first(null), { priority: 1 }).accepted()
    const handle = here.w.enqueue(job(null))
    await handle.accepted()
    const life = mortal(here.clock)
    here.another({ ...lives, clock: life.clock })
    await here.clock.advance(500)
    life.die()
    deaths = 1
    await here.clock.advance(1_500)
    here.w.start()
    expect(await here.until(handle.result())).toBe('done')
    expect(said.filter((word, i) => word !== said[i - 1])).toEqual(
      how === 'unknown' ? ['beat', 'unknown', 'marked', 'runs'] : ['beat', 'marked', 'runs'],
    )
  })

  it('is not marked as running while it waits on probation', async () => {
    let deaths = 0
    const said: Record<string, boolean[]> = {}
    const job = defineWork('job', async (_: null, ctx) => {
      if (deaths === 0) await NEVER
      await here.clock.sleep(5_000)
      return ctx.void()
    })
    const lives = { work: [job], visibility: 1_000, heartbeat: 300, stopDrain: 0 }
    const watched = tapped((ledger) => ({
      extend: (beats, ms, me) => {
        if (deaths > 0) for (const { lease, running } of beats) said[lease.id] = [...(said[lease.id] ?? []), running]
        return ledger.extend(beats, ms, me)
      },
    }))
    const here = world('native', { ...lives, autoStart: false }, watched)
    const handles = await here.w.enqueueMany([job(null), job(null)])
    const life = mortal(here.clock)
    here.another({ ...lives, clock: life.clock })
    // Long enough for a heartbeat to have said that both run.
    await here.clock.advance(500)
    life.die()
    deaths = 1
    await here.clock.advance(1_500)
    here.w.start()
    await here.clock.advance(700)
    const [first, second] = handles.map(({ id }) => said[id])
    // The first was marked before it began, and beats; the second waits for it, for as long as one beat.
    expect(first!.every((isRunning) => isRunning)).toBe(true)
    expect(second).toEqual([false, true, true])
  })

  it('runs its last chance by itself, also where its type runs in batches', async () => {
    const sizes: number[] = []
    let deaths = 0
    const batched = defineBatchWork('batched', {
      size: 5,
      maxWait: 10,
      run: async (inputs: readonly number[]) => {
        if (deaths < 2) await NEVER
        sizes.push(inputs.length)
        return inputs
      },
    })
    const lives = { work: [batched], visibility: 100, heartbeat: 30, stopDrain: 0 }
    const here = world('native', { ...lives, autoStart: false })
    const handles = await here.w.enqueueMany(Array.from({ length: 5 }, (_, n) => batched(n)))
    while (deaths < 2) {
      const life = mortal(here.clock)
      here.another({ ...lives, clock: life.clock })
      await here.clock.advance(80)
      life.die()
      await here.clock.advance(300)
      deaths += 1
    }
    here.w.start()
    await here.until(Promise.all(handles.map((handle) => handle.result())), 10_000)

    expect(sizes).toEqual([1, 1, 1, 1, 1])
  })

  it('runs its last chance by itself, and is not ended for what its neighbour does', async () => {
    const together: number[][] = []
    const now = new Set<number>()
    let deaths = 0
    const job = defineWork('job', async (n: number, ctx) => {
      if (deaths < 2) await NEVER
      now.add(n)
      together.push([...now])
      await here.clock.sleep(200)
      now.delete(n)
      return ctx.result(n)
    })
    const lives = { work: [job], visibility: 100, heartbeat: 30, stopDrain: 0 }
    const here = world('native', { ...lives, autoStart: false })
    const handles = Array.from({ length: 6 }, (_, n) => here.w.enqueue(job(n)))
    await Promise.all(handles.map((handle) => handle.accepted()))
    // Two deaths while all six ran, as their heartbeats had said; the second time they began one after the other.
    while (deaths < 2) {
      const life = mortal(here.clock)
      here.another({ ...lives, clock: life.clock })
      await here.clock.advance(deaths === 0 ? 50 : 300)
      life.die()
      await here.clock.advance(300)
      deaths += 1
    }
    here.w.start()
    await here.until(Promise.all(handles.map((handle) => handle.result())), 10_000)

    expect(together.map((some) => some.length)).toEqual([1, 1, 1, 1, 1, 1])
  })
})
