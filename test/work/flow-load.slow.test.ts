import { describe, expect, it } from 'vitest'
import { type Doer, defineWork, priorityDoer, unlimitedDoer, type WorkResult } from '../../src/index.js'
import { counting, NATIVE_GROUNDS, NEVER, outcomes } from './flow-tools.js'
import { gate, world } from './support.js'

describe('types that share a process', () => {
  it('do not keep each other out: a doer with free places is served while the window is full of another type', async () => {
    let isHung = false
    const hog = defineWork('hog', async (_: null, ctx) => {
      if (isHung) await NEVER
      return ctx.void()
    })
    const other = defineWork('other', (_: null, ctx) => ctx.result('other'), { doer: priorityDoer({ max: 4 }) })
    const here = world('native', { work: [hog, other], stopDrain: 0 })
    for (let n = 0; n < 20; n += 1) {
      await here.w.enqueueMany(Array.from({ length: 200 }, () => hog(null)))
      await here.clock.advance(60)
    }
    isHung = true
    await here.w.enqueueMany(Array.from({ length: 3_000 }, () => hog(null)))
    await here.clock.advance(5_000)
    const results = Array.from({ length: 20 }, () => here.w.enqueue(other(null)).result())

    expect(new Set(await here.until(Promise.all(results), 5_000))).toEqual(new Set(['other']))
  })

  it('get all places of a doer that does not say how many it has', async () => {
    const inner = priorityDoer({ max: 8, buffer: 0 })
    const own: Doer = { available: inner.available, do: inner.do, done: inner.done }
    const hold = gate()
    const long = defineWork('long', async (_: null, ctx) => {
      await hold.promise
      return ctx.void()
    })
    const quick = defineWork('quick', (_: null, ctx) => ctx.result('quick'))
    const here = world('native', { work: [long, quick], doer: own, stopDrain: 0 })
    await here.w.enqueueMany(Array.from({ length: 6 }, () => long(null)))
    await here.clock.advance(100)
    const results = Array.from({ length: 20 }, () => here.w.enqueue(quick(null)).result())

    expect(await here.until(Promise.all(results), 5_000)).toHaveLength(20)
    hold.open()
  })
})

describe('a backend that writes slowly', () => {
  it.each([
    ['32 places', {}],
    ['places without number', { doer: unlimitedDoer() }],
    ['a doer with a large buffer', { doer: priorityDoer({ max: 8, buffer: 100 }) }],
  ])('is not given more than it can write, with %s', async (_name, options) => {
    let runs = 0
    let most = 0
    const noop = defineWork('noop', (_: null, ctx) => {
      runs += 1
      most = Math.max(most, here.w.active().length)
      return ctx.void()
    })
    const slowly = outcomes(async (real, batch) => {
      await here.clock.sleep(1_000)
      return real(batch)
    })
    const here = world('native', { work: [noop], visibility: 2_000, heartbeat: 600, ...options }, slowly)
    const handles = await here.w.enqueueMany(Array.from({ length: 3_500 }, () => noop(null)))
    while (runs < 3_500 || here.w.active().length > 0) await here.clock.advance(500)
    expect((await here.w.states(handles.map(({ id }) => id))).filter((state) => state?.status !== 'success')).toEqual(
      [],
    )

    expect(runs).toBe(3_500)
    expect(here.errors).toEqual([])
    expect(most).toBeLessThanOrEqual(3_000)
  })

  it.each([
    ['leases of 2 s', { visibility: 2_000, heartbeat: 600 }],
    ['default options', {}],
  ])('gets full commits, however long each takes, with %s', async (_name, options) => {
    let runs = 0
    const noop = defineWork('noop', (_: null, ctx) => {
      runs += 1
      return ctx.void()
    })
    const slowly = outcomes(async (real, batch) => {
      await here.clock.sleep(1_000)
      return real(batch)
    })
    const here = world('native', { work: [noop], ...options }, slowly)
    await here.w.enqueueMany(Array.from({ length: 20_000 }, () => noop(null)))
    const startedAt = here.clock.now()
    while (runs < 20_000 || here.w.active().length > 0) await here.clock.advance(500)

    // With two commits of a thousand under way all the time it would be 10 s, and the window takes some to open.
    expect(here.clock.now() - startedAt).toBeLessThan(40_000)
    expect(runs).toBe(20_000)
    expect(here.errors).toEqual([])
  })

  it('refuses nothing to callers meanwhile', async () => {
    const noop = defineWork('noop', (_: null, ctx) => ctx.void())
    const slowly = outcomes(async (real, batch) => {
      await here.clock.sleep(1_000)
      return real(batch)
    })
    const here = world('native', { work: [noop], maxUnsent: 100 }, slowly)
    for (let i = 0; i < 20; i += 1) {
      await Promise.all(Array.from({ length: 100 }, () => here.w.enqueue(noop(null)).accepted()))
      await here.clock.advance(100)
    }
    expect(here.errors).toEqual([])
  })
})

describe('a run that queues many large children', () => {
  it('leaves the window as it was: its children are the backend’s once they are written', async () => {
    let isHung = false
    let runs = 0
    const leaf = defineWork('leaf', (_: string, ctx) => ctx.void())
    const fan = defineWork('fan', (_: null, ctx) =>
      ctx.queue(Array.from({ length: 6 }, () => leaf('x'.repeat(900_000)))),
    )
    const noop = defineWork('noop', (_: null, ctx) => {
      runs += 1
      return ctx.void()
    })
    const here = world(
      'native',
      { work: [leaf, fan, noop], stopDrain: 0, concurrency: 4 },
      outcomes((real, batch) => (isHung ? NEVER : real(batch))),
    )
    for (let n = 0; n < 20; n += 1) {
      await here.w.enqueueMany(Array.from({ length: 500 }, () => noop(null)))
      await here.clock.advance(60)
    }
    await here.until(here.w.enqueue(fan(null)))
    isHung = true
    runs = 0
    await here.w.enqueueMany(Array.from({ length: 500 }, () => noop(null)))
    await here.clock.advance(10)

    // At their pace; its 128 MiB are room for 24 such runs only.
    expect(runs).toBeGreaterThan(60)
  })
})

describe('parents that await their children', () => {
  it('all succeed at their first try, however many more there are than may wait at the same time', async () => {
    let runs = 0
    const child = defineWork('child', (n: number, ctx) => ctx.result(n))
    const parent = defineWork('parent', async (n: number, ctx): Promise<WorkResult> => {
      runs += 1
      return ctx.result(await here.w.enqueue(child(n)).result())
    })
    const here = world('native', { work: [child, parent], autoStart: false })
    const handles = await here.w.enqueueMany(Array.from({ length: 3_000 }, (_, n) => parent(n)))
    here.w.start()
    const results = await here.until(Promise.all(handles.map((handle) => handle.result())), 600_000)

    expect(results).toEqual(Array.from({ length: 3_000 }, (_, n) => n))
    expect([runs, here.errors]).toEqual([3_000, []])
  })
})

describe('a process that holds much', () => {
  it('holds no more input than it has memory for, also where places are without number', async () => {
    let running = 0
    let most = 0
    const big = defineWork('big', async (_: string, ctx) => {
      running += 1
      most = Math.max(most, running)
      await here.clock.sleep(1_000)
      running -= 1
      return ctx.void()
    })
    const here = world('native', { work: [big], doer: unlimitedDoer(), autoStart: false })
    // 128 MiB are room for 268 of them.
    const handles = await here.w.enqueueMany(Array.from({ length: 400 }, () => big('x'.repeat(500_000))))
    here.w.start()
    await here.until(Promise.all(handles.map((handle) => handle.result())))

    expect(most).toBeGreaterThan(200)
    expect(most).toBeLessThan(270)
  })

  it('holds what begins soon, however many types have their own limit', async () => {
    let runs = 0
    let most = 0
    const types = Array.from({ length: 300 }, (_, n) =>
      defineWork(
        `type${n}`,
        async (_: null, ctx) => {
          runs += 1
          most = Math.max(most, here.w.active().length)
          await here.clock.sleep(20)
          return ctx.void()
        },
        { concurrency: 1 },
      ),
    )
    const here = world('native', { work: types, visibility: 1_000, heartbeat: 300, autoStart: false })
    await here.w.enqueueMany(types.flatMap((type) => Array.from({ length: 20 }, () => type(null))))
    here.w.start()
    while (runs < 6_000) await here.clock.advance(500)

    // 32 places of 20 ms: 400 begin within a quarter of the lease.
    expect(most).toBeLessThan(700)
    expect(here.errors).toEqual([])
  })
})

describe('handlers that enqueue work which skips the queue', () => {
  it('do not wait for the places that they hold themselves', async () => {
    let children = 0
    const child = defineWork('child', async (_: null, ctx) => {
      children += 1
      await here.clock.sleep(1)
      return ctx.void()
    })
    const parent = defineWork('parent', async (_: null, ctx): Promise<WorkResult> => {
      for (let n = 0; n < 60; n += 1) await here.w.enqueue(child(null), { skipQueue: true }).accepted()
      return ctx.void()
    })
    const here = world('native', { work: [child, parent] })
    await here.until(Promise.all(Array.from({ length: 32 }, () => here.w.enqueue(parent(null)).result())))
    await here.clock.advance(10_000)

    expect(children).toBe(32 * 60)
  })

  it('do not wait for each other where they have no places', async () => {
    let children = 0
    const child = defineWork('child', (_: null, ctx) => {
      children += 1
      return ctx.void()
    })
    const parent = defineWork('parent', async (_: null, ctx): Promise<WorkResult> => {
      await here.clock.sleep(50)
      await here.w.enqueue(child(null), { skipQueue: true }).accepted()
      return ctx.void()
    })
    const here = world('native', { work: [child, parent], doer: unlimitedDoer() })
    for (let n = 0; n < 1_000; n += 1) void here.w.enqueue(parent(null), { skipQueue: true })
    await here.clock.advance(5_000)

    expect(children).toBe(1_000)
  })

  it('keep their place while a child without one waits', async () => {
    const { seen, during } = counting()
    const leaf = defineWork(
      'leaf',
      async (_: null, ctx) => {
        await here.clock.sleep(50)
        return ctx.void()
      },
      { doer: unlimitedDoer() },
    )
    const child = defineWork(
      'child',
      async (_: null, ctx): Promise<WorkResult> => {
        await here.w.enqueue(leaf(null)).result()
        return ctx.void()
      },
      { doer: unlimitedDoer() },
    )
    const parent = defineWork('parent', async (_: null, ctx): Promise<WorkResult> => {
      await here.w.enqueue(child(null), { skipQueue: true }).accepted()
      await during(here.clock.sleep(100))
      return ctx.void()
    })
    const here = world('native', { work: [leaf, child, parent], concurrency: 1 })
    await here.until(Promise.all(Array.from({ length: 5 }, () => here.w.enqueue(parent(null)).result())))

    expect(seen).toEqual({ now: 0, most: 1, runs: 5 })
  })
})

describe('too many handlers that wait', () => {
  it('is an error that says what to do', async () => {
    const never = defineWork('never', () => NEVER)
    const parent = defineWork('parent', async (n: number, ctx) => {
      if (n > 1_000) await here.w.enqueue(never(null)).result()
      else await here.w.enqueue(parent(n + 1)).result()
      return ctx.void()
    })
    const here = world('native', { work: [never, parent], concurrency: 4, stopDrain: 0, retry: { attempts: 1 } })
    await expect(here.until(here.w.enqueue(parent(0)).result())).rejects.toThrow(/wait for other work already/)
  })
})

describe('callers who enqueue more than can be sent', () => {
  const noop = defineWork('noop', (_: null, ctx) => ctx.void())

  it.each(NATIVE_GROUNDS)('have enqueueMany wait for room, however many there are (%s)', async (ground) => {
    const here = world(ground, { work: [noop], autoStart: false, maxUnsent: 50 })
    const handles = await here.w.enqueueMany(Array.from({ length: 1_000 }, () => noop(null)))

    expect(handles).toHaveLength(1_000)
    expect(await here.size()).toBe(1_000)
  })

  it('have enqueueMany wait for work that skips the queue, too', async () => {
    const here = world('native', { work: [noop], autoStart: false, maxUnsent: 50 })
    const sent = here.w.enqueueMany(
      Array.from({ length: 3_000 }, () => noop(null)),
      { skipQueue: true },
    )

    expect(await here.until(sent)).toHaveLength(3_000)
  })

  it('are reported once where they do not wait', async () => {
    const here = world('native', { work: [noop], autoStart: false, maxUnsent: 50 })
    for (let i = 0; i < 1_000; i += 1) void here.w.enqueue(noop(null))
    await here.clock.advance(100)

    expect(await here.size()).toBe(50)
    expect(here.errors).toHaveLength(1)
    expect(here.errors[0]?.error).toMatchObject({ code: 'BUFFER_FULL' })
  })

  it('have work that skips the queue wait until outcomes are written, not only until handlers have ended', async () => {
    let [unwritten, most] = [0, 0]
    const direct = defineWork('direct', (_: null, ctx) => {
      unwritten += 1
      most = Math.max(most, unwritten)
      return ctx.result('x'.repeat(20_000))
    })
    const slowly = outcomes(async (real, batch) => {
      await here.clock.sleep(100)
      const results = await real(batch)
      unwritten -= batch.length
      return results
    })
    const here = world('native', { work: [direct], autoStart: false }, slowly)
    const run = async () => {
      for (let n = 0; n < 5; n += 1) {
        const handles = Array.from({ length: 1_000 }, () => here.w.enqueue(direct(null), { skipQueue: true }))
        await Promise.all(handles.map((handle) => handle.accepted()))
      }
    }
    await here.until(run(), 600_000)

    expect(most).toBeLessThanOrEqual(1_000)
  })

  it('are reported once where work that skips the queue finds no room, turn after turn', async () => {
    const direct = defineWork('direct', async (_: null, ctx) => {
      await here.clock.sleep(1_000)
      return ctx.void()
    })
    const here = world('native', { work: [direct], autoStart: false, maxUnsent: 500 })
    for (let n = 0; n < 1_600; n += 1) {
      void here.w.enqueue(direct(null), { skipQueue: true })
      if (n > 1_500) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(here.errors.map(({ error }) => (error as { code?: string }).code)).toEqual(['BUFFER_FULL'])
  })

  it('have work that skips the queue wait, too', async () => {
    let most = 0
    const direct = defineWork('direct', async (_: null, ctx) => {
      most = Math.max(most, here.w.active().length)
      await here.clock.sleep(1)
      return ctx.void()
    })
    const here = world('native', { work: [direct], autoStart: false, maxUnsent: 10_000 })
    const handles = Array.from({ length: 1_500 }, () => here.w.enqueue(direct(null), { skipQueue: true }))
    await here.until(Promise.all(handles.map((handle) => handle.result())))

    expect(most).toBeLessThanOrEqual(1_000)
  })
})
