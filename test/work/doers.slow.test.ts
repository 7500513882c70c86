import { describe, expect, it } from 'vitest'
import { defineWork, priorityDoer } from '../../src/index.js'
import { GROUNDS, gate, isOnMemory, PLAIN_GROUNDS, world } from './support.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

/** Work that notes its runs; the first of them waits at the gate. */
function gated(options: { readonly skipQueue?: boolean } = {}) {
  const hold = gate()
  const runs: [number, number][] = []
  const work = defineWork(
    'gated',
    async (n: number, ctx) => {
      runs.push([n, ctx.deliveries])
      if (n === 1) await hold.promise
      return ctx.result(n)
    },
    options,
  )
  return { work, runs, hold }
}

describe.each(GROUNDS)('work that skips the queue and waits for its doer, on %s ports', (ground) => {
  it('is given back at stop, frees its place, and runs after the next start', async () => {
    const doer = priorityDoer({ max: 1 })
    const { work, runs, hold } = gated({ skipQueue: true })
    const { w, clock, until } = world(ground, { work: [work], doer })
    const first = w.enqueue(work(1))
    const second = w.enqueue(work(2))
    await clock.advance(20)
    expect(w.active().map(({ status }) => status)).toEqual(['running', 'pending'])

    const stopped = w.stop()
    await clock.advance(10)
    hold.open()
    await until(stopped)
    await clock.settle()
    expect(runs).toEqual([[1, 1]])
    expect(w.active()).toEqual([])
    expect(doer.available()).toBe(2)

    w.start()
    expect(await until(first.result())).toBe(1)
    expect(await until(second.result(), 1_000)).toBe(2)
    expect(await until(w.enqueue(work(3)).result(), 1_000)).toBe(3)
    expect(runs).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ])
  })

  it('is given back when it was accepted while the system stops', async () => {
    const doer = priorityDoer({ max: 1 })
    const { work, runs, hold } = gated({ skipQueue: true })
    const { w, clock, until } = world(ground, { work: [work], doer })
    void w.enqueue(work(1))
    await clock.advance(20)
    const stopped = w.stop()
    await clock.advance(10)
    const late = w.enqueue(work(2))
    await clock.advance(10)
    hold.open()
    await until(stopped)
    await clock.settle()
    expect(runs).toEqual([[1, 1]])
    expect(doer.available()).toBe(2)

    w.start()
    expect(await until(late.result(), 1_000)).toBe(2)
  })

  it('keeps its lease while it waits', async () => {
    const { work, runs, hold } = gated({ skipQueue: true })
    const { w, clock, until } = world(ground, {
      work: [work],
      doer: priorityDoer({ max: 1 }),
      visibility: 200,
      heartbeat: 50,
    })
    void w.enqueue(work(1))
    const second = w.enqueue(work(2))
    await clock.advance(1_000)
    hold.open()

    expect(await until(second.result())).toBe(2)
    await clock.advance(1_000)
    expect(runs).toEqual([
      [1, 1],
      [2, 1],
    ])
    expect(w.metrics.get('work.lease_lost', { type: 'gated' })?.value ?? 0).toBe(0)
  })
})

describe.each(GROUNDS)('work whose deadline passes while it waits in a doer, on %s ports', (ground) => {
  it.each([false, true])('is not run any more (skipQueue: %s)', async (skipQueue) => {
    const { work, runs, hold } = gated({ skipQueue })
    const { w, clock, until } = world(ground, { work: [work], doer: priorityDoer({ max: 1 }) })
    void w.enqueue(work(1))
    await clock.advance(1)
    const second = w.enqueue(work(2), { timeout: 30 })
    const ended = second.result()
    ended.catch(() => undefined)
    await clock.advance(100)
    hold.open()

    await expect(until(ended)).rejects.toThrow('deadline exceeded')
    expect(runs).toEqual([[1, 1]])
  })
})

describe.each(GROUNDS)('an item that is given back, on %s ports', (ground) => {
  it('delays nothing but itself', async () => {
    const refused = defineWork('refused', (_: null, ctx) => ctx.void())
    const { w, clock, until } = world(ground, {
      work: [noop, refused],
      accept: ({ type }) => type !== 'refused',
      pollInterval: 1_000,
    })
    w.enqueue(refused(null))
    await clock.advance(50)
    for (let i = 0; i < 5; i += 1) {
      const startAt = clock.now()
      await until(w.enqueue(noop(null), { delay: 100 }).result())
      expect(clock.now() - startAt).toBeLessThan(120)
    }
  })
})

describe.each(GROUNDS)('a type with its own small doer, on %s ports', (ground) => {
  // W8 S82
  it.each(['registered', 'learnt'] as const)('flows without waiting for the poll (%s)', async (known) => {
    const own = defineWork('own', (_: null, ctx) => ctx.void(), { doer: priorityDoer({ max: 2 }) })
    const { w, clock, until } = world(ground, {
      work: known === 'registered' ? [noop, own] : [noop],
      pollInterval: 1_000,
    })
    const startAt = clock.now()
    await until(Promise.all(Array.from({ length: 200 }, () => w.enqueue(own(null)).result())))

    // A doer that uses up what it has at hand gets more of it each time, so this takes few polls.
    expect(clock.now() - startAt).toBeLessThan(25)
  })

  it.each(['registered', 'learnt'] as const)(
    'is fetched for while the doer of the others is full (%s)',
    async (known) => {
      const { work, hold } = gated()
      const own = defineWork('own', (_: null, ctx) => ctx.result('own'), { doer: priorityDoer({ max: 2 }) })
      const { w, clock, until } = world(ground, {
        work: known === 'registered' ? [work, own] : [work],
        doer: priorityDoer({ max: 1, buffer: 0 }),
      })
      const first = w.enqueue(work(1)).result()
      await clock.advance(20)
      expect(await until(w.enqueue(own(null)).result(), 1_000)).toBe('own')
      hold.open()
      await until(first)
    },
  )

  it('holds little of what it has no room for, and keeps no other type waiting', async () => {
    const hold = gate()
    const slow = defineWork(
      'slow',
      async (_: null, ctx) => {
        await hold.promise
        return ctx.void()
      },
      { doer: priorityDoer({ max: 2 }) },
    )
    const { w, clock, until } = world(ground, { work: [noop, slow], pollInterval: 100 })
    const all = Promise.all(Array.from({ length: 300 }, () => w.enqueue(slow(null)).result()))
    await clock.advance(5)
    const startAt = clock.now()
    await until(w.enqueue(noop(null)).result())
    expect(clock.now() - startAt).toBeLessThan(500)
    await clock.advance(5_000)

    expect(w.active().length).toBeLessThanOrEqual(8)
    hold.open()
    await until(all)
  })
})

describe.each(PLAIN_GROUNDS)('a small doer with more than it can do, on %s ports', (ground) => {
  it('polls the queue about once per interval, not in a loop', async () => {
    const hold = gate()
    const slow = defineWork(
      'slow',
      async (_: null, ctx) => {
        await hold.promise
        return ctx.void()
      },
      { doer: priorityDoer({ max: 2 }) },
    )
    let pops = 0
    const { w, clock, until } = world(ground, { work: [noop, slow], pollInterval: 100 }, (ports) => ({
      ...ports,
      queue: {
        ...ports.queue,
        pop: (max, visibility) => {
          pops += 1
          return ports.queue.pop(max, visibility)
        },
      },
    }))
    const all = Promise.all(Array.from({ length: 50 }, () => w.enqueue(slow(null)).result()))
    await clock.advance(10_000)
    expect(pops).toBeLessThan(150)
    hold.open()
    await until(all)
  })
})

describe.each(GROUNDS)('a run that does not end in time at stop, on %s ports', (ground) => {
  it('is not begun beside itself: it comes back when its lease has lapsed', async () => {
    let running = 0
    let peak = 0
    let runs = 0
    const hold = gate()
    const deaf = defineWork('deaf', async (_: null, ctx) => {
      runs += 1
      running += 1
      peak = Math.max(peak, running)
      if (runs === 1) await hold.promise
      running -= 1
      return ctx.result(runs)
    })
    const here = world(ground, { work: [deaf], visibility: 10_000, stopDrain: 100 })
    const handle = here.w.enqueue(deaf(null))
    await here.clock.advance(20)
    await here.until(here.w.stop())
    const other = here.another({ work: [deaf], visibility: 10_000 })
    await here.clock.advance(5_000)
    expect(runs).toBe(1)
    hold.open()
    await here.clock.advance(10_000)

    // Where the backend decides about late outcomes, that of the run which outlived the stop counts: it still holds its lease.
    const counts = here.w.capabilities.atomic ? 1 : 2
    expect(runs).toBe(counts)
    expect(peak).toBe(1)
    expect(other.active()).toEqual([])
    here.w.start()
    expect(await here.until(handle.result())).toBe(counts)
  })
})

describe.runIf(isOnMemory)('what is fetched ahead', () => {
  it('is pending until it begins', async () => {
    const { work, hold } = gated()
    const { w, clock } = world('native', { work: [work], doer: priorityDoer({ max: 1, buffer: 5 }) })
    await w.enqueueMany([work(1), work(2), work(3)])
    await clock.advance(20)
    expect(w.active().length).toBe(3)
    expect((await w.list()).map(({ status }) => status).sort()).toEqual(['pending', 'pending', 'running'])
    hold.open()
    await clock.advance(20)
    expect((await w.list()).map(({ status }) => status)).toEqual(['success', 'success', 'success'])
  })
})
