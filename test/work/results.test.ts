import { describe, expect, it } from 'vitest'
import { createWork, defineWork, priorityDoer, setIdGenerator } from '../../src/index.js'
import { GROUNDS, isOnMemory, world } from './support.js'

const add = defineWork('add', (i: { a: number; b: number }, ctx) => ctx.result(i.a + i.b))

describe.each(GROUNDS)('work on %s ports', (ground) => {
  // S30
  it('gives its own result, by instance and by name, and its group value when awaited', async () => {
    const { w, until } = world(ground, { work: [add] })

    expect(await until(w.enqueue(add({ a: 2, b: 3 })).result())).toBe(5)
    expect(await until(w.enqueue('add', { a: 10, b: 1 }).result())).toBe(11)
    expect(await until(w.enqueue(add({ a: 4, b: 5 })))).toBe(9)
  })

  // S31
  it('runs immediately where a type skips the queue', async () => {
    const echo = defineWork('echo', (i: { v: number }, ctx) => ctx.result(i.v), { skipQueue: true })
    const { w, until } = world(ground, { work: [echo] })

    expect(await until(w.enqueue(echo({ v: 7 })).result())).toBe(7)
  })

  // S32
  it('resolves a fan-out without its own value and with the value of the last child', async () => {
    const leaf = defineWork('leaf', (n: number, ctx) => ctx.result(n))
    const root = defineWork('root', (_: null, ctx) => ctx.queue([leaf(1), leaf(2)]))
    const { w, until } = world(ground, { work: [leaf, root] })
    const handle = w.enqueue(root(null))

    expect(await until(handle.result())).toBeUndefined()
    expect([1, 2]).toContain(await until(handle.group()))
  })

  // S33
  it('waits for every leaf, and takes the value that the root contributes', async () => {
    let ran = 0
    const leaf = defineWork('leaf', (_: null, ctx) => {
      ran += 1
      return ctx.void()
    })
    const root = defineWork('root', (_: null, ctx) => ctx.queue([leaf(null), leaf(null), ctx.result('root-done')]))
    const { w, until } = world(ground, { work: [leaf, root] })

    expect(await until(w.enqueue(root(null)))).toBe('root-done')
    expect(ran).toBe(2)
  })

  // S34
  it('keeps a final value against later contributions', async () => {
    const child = defineWork('child', (_: null, ctx) => ctx.result('later'))
    const root = defineWork('root', (_: null, ctx) => {
      const c = child(null)
      return ctx.queue([c, ctx.result({ done: true, cid: c.id }, { final: true })])
    })
    const { w, until } = world(ground, { work: [child, root] })

    expect(await until(w.enqueue(root(null)))).toMatchObject({ done: true })
  })

  // S35
  it('folds what three items append', async () => {
    const item = defineWork('item', (n: number, ctx) =>
      ctx.result(n, { append: (existing: number | undefined) => (existing ?? 0) + n }),
    )
    const root = defineWork('root', (_: null, ctx) => ctx.queue([item(1), item(2), item(3)]))
    const { w, until } = world(ground, { work: [item, root], doer: priorityDoer({ max: 1 }) })

    expect(await until(w.enqueue(root(null)))).toBe(6)
  })

  // S36 W13
  it('folds twenty at the same time without losing one', async () => {
    const item = defineWork('item', (_: null, ctx) =>
      ctx.result(1, { append: (existing: number | undefined) => (existing ?? 0) + 1 }),
    )
    const root = defineWork('root', (_: null, ctx) => ctx.queue(Array.from({ length: 20 }, () => item(null))))
    const { w, until } = world(ground, { work: [item, root] })

    expect(await until(w.enqueue(root(null)))).toBe(20)
  })

  // S37
  it('gives a child its parent, and a root that it has none', async () => {
    const child = defineWork('child', (_: null, ctx) => ctx.result(ctx.parent))
    let ofRoot: unknown = 'unset'
    const root = defineWork('root', (_: null, ctx) => {
      ofRoot = ctx.parent
      return ctx.queue(child(null))
    })
    const { w, until } = world(ground, { work: [child, root] })
    const handle = w.enqueue(root(null))

    expect(await until(handle)).toBe(handle.id)
    expect(ofRoot).toBeUndefined()
  })

  // S38
  it('fails what makes an instruction and does not return it, unless strictReturn is off', async () => {
    let ran = 0
    const leaf = defineWork('leaf', (_: null, ctx) => {
      ran += 1
      return ctx.void()
    })
    const strict = defineWork(
      'strict',
      (_: null, ctx) => {
        ctx.queue([leaf(null)])
        return ctx.void()
      },
      { retry: { attempts: 1 } },
    )
    const lax = defineWork(
      'lax',
      (_: null, ctx) => {
        ctx.queue([leaf(null)])
        return ctx.void()
      },
      { strictReturn: false },
    )
    const { w, until } = world(ground, { work: [leaf, strict, lax] })

    await expect(until(w.enqueue(strict(null)).result())).rejects.toThrow(/not returned/)
    expect(await until(w.enqueue(lax(null)).result())).toBeUndefined()
    expect(ran).toBe(0)
  })

  // S39 W23
  it('runs a handler whose branches return different results', async () => {
    const maybe = defineWork('maybe', (ok: boolean, ctx) => (ok ? ctx.result(1) : ctx.void()))
    const { w, until } = world(ground, { work: [maybe] })

    expect(await until(w.enqueue(maybe(true)).result())).toBe(1)
    expect(await until(w.enqueue(maybe(false)).result())).toBeUndefined()
    expect(await until(w.enqueue(maybe(true)))).toBe(1)
    expect(await until(w.enqueue(maybe(false)))).toBeUndefined()
  })

  // S40
  it('orders its times and its events', async () => {
    const { w, until, events } = world(ground, { work: [add] })
    const handle = w.enqueue(add({ a: 1, b: 1 }))
    await until(handle)

    const state = (await until(w.list())).find((s) => s.id === handle.id)
    expect(state).toMatchObject({ status: 'success' })
    expect(state?.startAt).toBe(state?.queueAt)
    expect(state?.runAt).toBeGreaterThanOrEqual(state?.queueAt ?? Infinity)
    expect(state?.endAt).toBeGreaterThanOrEqual(state?.runAt ?? Infinity)
    expect(events.map((event) => event.kind)).toEqual(['queued', 'started', 'succeeded', 'group-done'])
  })

  // S41
  it('waits for its delay', async () => {
    const { w, until, clock } = world(ground, { work: [add] })
    const handle = w.enqueue(add({ a: 1, b: 1 }), { delay: 40 })
    await clock.advance(20)

    const state = (await w.list()).find((s) => s.id === handle.id)
    expect(state).toMatchObject({ status: 'pending' })
    expect(state?.startAt).toBe((state?.queueAt ?? 0) + 40)
    expect(await until(handle.result())).toBe(2)
  })

  // S42
  it('starts no earlier than its start time', async () => {
    let startedAt = 0
    const late = defineWork('late', (_: null, ctx) => {
      startedAt = world0.clock.now()
      return ctx.void()
    })
    const world0 = world(ground, { work: [late] })
    const t0 = world0.clock.now()
    await world0.until(world0.w.enqueue(late(null), { runAt: t0 + 40 }).result())

    expect(startedAt).toBeGreaterThanOrEqual(t0 + 40)
  })

  // S43
  it('is not disturbed by listeners that throw', async () => {
    const boom = () => {
      throw new Error('listener')
    }
    const calm = defineWork('calm', (_: null, ctx) => ctx.result('ok'), { onEvent: boom })
    const { w, until } = world(ground, { work: [calm], onEvent: boom })

    expect(await until(w.enqueue(calm(null)).result())).toBe('ok')
  })

  it('works when its methods are taken out of it', async () => {
    const { w, until } = world(ground, { work: [add] })
    const { enqueue, active, stats } = w

    expect(await until(enqueue(add({ a: 1, b: 2 })).result())).toBe(3)
    expect(active()).toEqual([])
    expect(stats().length).toBeGreaterThan(0)
  })

  it('accepts an item once, and says so when it was there already', async () => {
    const { w, until } = world(ground, { work: [add] })
    const one = add({ a: 1, b: 2 })

    expect(await until(w.enqueue(one).accepted())).toEqual({ kind: 'created', id: one.id })
    if (ground === 'native') {
      expect(await until(w.enqueue(one).accepted())).toEqual({ kind: 'coalesced', id: one.id })
    }
  })

  it('takes many and resolves when all are durable', async () => {
    const { w, until } = world(ground, { work: [add] })
    const handles = await until(w.enqueueMany([1, 2, 3].map((a) => add({ a, b: 0 }))))

    expect(await until(Promise.all(handles.map((handle) => handle.result())))).toEqual([1, 2, 3])
  })
})

describe.runIf(isOnMemory)('a system', () => {
  // S31
  it('needs no options at all', async () => {
    const echo = defineWork('echo', (i: { v: number }, ctx) => ctx.result(i.v), { skipQueue: true })
    const w = createWork()

    expect(await w.enqueue(echo({ v: 7 })).result()).toBe(7)
    await w.stop()
  })
})

describe.runIf(isOnMemory)('ids', () => {
  // S44
  it('come from the generator that was set, and from UUIDs again without one', () => {
    let n = 0
    setIdGenerator(() => `wid-${n++}`)
    try {
      expect(add({ a: 1, b: 1 }).id).toMatch(/^wid-\d+$/)
    } finally {
      setIdGenerator()
    }
    expect(add({ a: 1, b: 1 }).id).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe.each(GROUNDS)('a type that was never registered, on %s ports', (ground) => {
  it('runs all the same in the process that built it, as a root and as a child', async () => {
    const child = defineWork('child', (n: number, ctx) => ctx.result(n * 2))
    const root = defineWork('root', (n: number, ctx) => ctx.queue(child(n)))
    const { w, until } = world(ground)

    expect(await until(w.enqueue(child(2)).result())).toBe(4)
    expect(await until(w.enqueue(root(3)))).toBe(6)
  })
})

describe.runIf(isOnMemory)('work that two parents queue', () => {
  it('runs once, and neither group waits for it forever', async () => {
    let ran = 0
    const child = defineWork('child', (_: null, ctx) => {
      ran += 1
      return ctx.void()
    })
    const shared = child(null)
    const parent = defineWork('parent', (_: null, ctx) => ctx.queue([shared, ctx.result('done')]))
    const { w, until } = world('native', { work: [child, parent] })

    expect(await until(w.enqueue(parent(null)))).toBe('done')
    expect(await until(w.enqueue(parent(null)))).toBe('done')
    expect(ran).toBe(1)
  })
})
