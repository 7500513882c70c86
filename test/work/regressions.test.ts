import { describe, expect, it } from 'vitest'
import { defaultCodec, defineWork, type JsonCodec, priorityDoer, type WorkEvent } from '../../src/index.js'
import type { PulledWork } from '../../src/ports/ports.js'
import { KnownStates } from '../../src/work/wait/states.js'
import { body, GROUNDS, gate, isOnMemory, PLAIN_GROUNDS, world } from './support.js'

// Each of these went wrong in `@ayepi/work`, the engine whose API this one keeps.

const noop = defineWork('noop', (_: null, ctx) => ctx.void())
const kinds = (events: readonly WorkEvent[], kind: WorkEvent['kind']) => events.filter((event) => event.kind === kind)

describe.each(PLAIN_GROUNDS)('an ack that is lost silently, on %s ports', (ground) => {
  // W4
  it('takes its item out of the group once: the group closes when its sibling has ended, and not before', async () => {
    const hold = gate()
    let lost = 0
    const a = defineWork('a', (_: null, ctx) => ctx.result('a'))
    const b = defineWork('b', async (_: null, ctx) => {
      await hold.promise
      return ctx.result('b')
    })
    const root = defineWork('root', (_: null, ctx) => ctx.queue([a(null), b(null)]))
    const { w, clock, until, events } = world(
      ground,
      { work: [a, b, root], visibility: 60, heartbeat: 20 },
      (ports) => ({
        ...ports,
        queue: {
          ...ports.queue,
          ack: (pulled: PulledWork) => {
            if (!pulled.body.includes('"type":"a"') || lost > 2) return ports.queue.ack(pulled)
            lost += 1
            return undefined
          },
        },
      }),
    )
    const handle = w.enqueue(root(null))
    let value: unknown
    void handle.group().then((settled) => {
      value = settled
    })
    await clock.advance(600)
    expect(lost).toBe(3)
    expect(value).toBeUndefined()
    hold.open()

    expect(await until(handle.group())).toBe('b')
    await clock.advance(1_000)
    expect(kinds(events, 'group-done')).toHaveLength(1)
    expect(kinds(events, 'succeeded')).toHaveLength(3)
  })
})

describe.each(GROUNDS)('states on %s ports', (ground) => {
  // W14
  it('are listed up to a bound, however much has been done', async () => {
    const { w, clock } = world(ground, { work: [noop], maxStates: 20 })
    for (let round = 0; round < 5; round += 1) {
      await w.enqueueMany(Array.from({ length: 20 }, () => noop(null)))
      await clock.advance(20)
    }
    const states = await w.list()

    expect(states.length).toBeGreaterThan(0)
    // Backends that can list are read by the page.
    if (ground === 'wrapped' || ground === 'minimal') expect(states.length).toBe(20)
  })
})

describe('what a process remembers of the work it has seen', () => {
  // W14
  it('is bounded: what has ended goes first, and the oldest of it', () => {
    const known = new KnownStates(3)
    const state = (id: string, status: 'pending' | 'success') =>
      ({ id, type: 't', attempt: 1, queueAt: 0, startAt: 0, priority: 0, status }) as const
    for (const id of ['a', 'b', 'c']) known.remember('g', state(id, 'success'))
    for (const id of ['d', 'e']) known.remember('g', state(id, 'pending'))
    expect(known.list().map(({ id }) => id)).toEqual(['c', 'd', 'e'])
    known.remember('g', state('f', 'pending'))
    known.remember('g', state('h', 'pending'))

    expect(known.list('g').map(({ id }) => id)).toEqual(['e', 'f', 'h'])
    expect(known.get('c')).toBeUndefined()
  })
})

describe.each(GROUNDS)('an accept that throws, on %s ports', (ground) => {
  // W22
  it('puts its item back for a moment and is reported: the lease is not left to lapse', async () => {
    let asked = 0
    const { w, clock, until, errors } = world(ground, {
      work: [noop],
      visibility: 60_000,
      heartbeat: 20_000,
      accept: () => {
        asked += 1
        if (asked === 1) throw new Error('the list is not there')
        return true
      },
    })
    const startAt = clock.now()
    await until(w.enqueue(noop(null)).result())

    expect(clock.now() - startAt).toBeLessThan(10_000)
    expect(errors.map(({ error, phase }) => [String(error), phase])).toContainEqual([
      'Error: the list is not there',
      'queue',
    ])
  })
})

describe.each(PLAIN_GROUNDS)('one item that is delivered many times at the same time, on %s ports', (ground) => {
  // W27
  it('runs once, is counted once, and leaves the gauges at zero', async () => {
    const hold = gate()
    let runs = 0
    const slow = defineWork('slow', async (_: null, ctx) => {
      runs += 1
      await hold.promise
      return ctx.void()
    })
    let given = 0
    // Each poll brings one more copy.
    const { w, clock } = world(ground, { work: [slow], pollInterval: 5 }, (ports) => ({
      ...ports,
      queue: {
        ...ports.queue,
        pop: async (max: number, visibility: number): Promise<PulledWork[]> => {
          if (given >= 10) return ports.queue.pop(max, visibility)
          given += 1
          return [{ body: body({ id: 'one', type: 'slow' }), handle: `copy ${given}`, attempt: 1 }]
        },
      },
    }))
    await clock.advance(500)
    const gauge = (name: string) => w.metrics.get(`work.${name}`, { type: 'slow' })?.value
    expect(given).toBe(10)
    expect(runs).toBe(1)
    expect(gauge('active')).toBe(1)
    expect(w.active()).toHaveLength(1)
    hold.open()
    await clock.advance(500)

    expect(gauge('active')).toBe(0)
    expect(gauge('peak_active')).toBe(1)
    expect(w.active()).toEqual([])
  })
})

describe.each(GROUNDS)('a wait on %s ports', (ground) => {
  // W28
  it('for what is no longer kept rejects, instead of waiting forever', async () => {
    const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))
    const { w, clock, until } = world(ground, { work: [add], keepCompleted: 1_000, pollInterval: 1_000 })
    const handle = w.enqueue(add(1))
    await until(handle.accepted())
    await clock.advance(60_000)
    // Records go when something else is written.
    await until(w.enqueue(add(2)).result())

    await expect(until(handle.result())).rejects.toMatchObject({ code: 'RESULT_EXPIRED' })
  })

  // W28
  it('that lasts for more than an hour still handles its group', async () => {
    const unhandled: string[] = []
    const hold = gate()
    const long = defineWork('long', async (_: null, ctx) => {
      await hold.promise
      return ctx.result('at last')
    })
    const { w, clock, until } = world(ground, {
      work: [long],
      visibility: 600_000,
      heartbeat: 200_000,
      pollInterval: 60_000,
      unhandledWorkGroup: ({ groupId }) => void unhandled.push(groupId),
    })
    const waiting = w.enqueue(long(null)).group()
    await clock.advance(90 * 60_000)
    hold.open()

    expect(await until(waiting)).toBe('at last')
    await clock.advance(1_000)
    expect(unhandled).toEqual([])
  })

  // W31
  it('for a result that cannot be read rejects', async () => {
    const codec: JsonCodec = {
      stringify: defaultCodec.stringify,
      parse: (text) => {
        if (text.includes('secret')) throw new Error('the key is lost')
        return defaultCodec.parse(text)
      },
    }
    const sealed = defineWork('sealed', (_: null, ctx) => ctx.result('secret'), { codec })
    const { w, until } = world(ground, { work: [sealed] })

    await expect(until(w.enqueue(sealed(null)).result())).rejects.toThrow('the key is lost')
  })
})

describe.each(GROUNDS)('a backlog on %s ports', (ground) => {
  // W30
  it('is taken by priority, not only what a process has already taken', async () => {
    const order: number[] = []
    const job = defineWork('job', (n: number, ctx) => {
      order.push(n)
      return ctx.void()
    })
    const { w, until } = world(ground, { work: [job], autoStart: false, doer: priorityDoer({ max: 1, buffer: 0 }) })
    const handles = []
    for (const n of [1, 2, 3]) handles.push(w.enqueue(job(n), { priority: n }))
    await until(Promise.all(handles.map((handle) => handle.accepted())))
    w.start()
    await until(Promise.all(handles.map((handle) => handle.result())))

    expect(order).toEqual([3, 2, 1])
  })
})

describe.each(GROUNDS)('a start during a stop, on %s ports', (ground) => {
  // W32
  it('leaves one loop: what it started ends with the next stop', async () => {
    const { w, clock, until, events } = world(ground, { work: [noop] })
    await clock.advance(20)
    const stopping = w.stop()
    w.start()
    await until(stopping)
    const handles = await until(w.enqueueMany(Array.from({ length: 5 }, () => noop(null))))
    await until(Promise.all(handles.map((handle) => handle.result())))
    expect(kinds(events, 'started')).toHaveLength(5)
    await until(w.stop())

    if (isOnMemory) expect(clock.pending).toBe(0)
  })
})

describe.each(PLAIN_GROUNDS)('a store that is away for a while, on %s ports', (ground) => {
  // W6
  it('causes no warning of a leak, however many outcomes wait for it', async () => {
    const warned: string[] = []
    const listen = ({ name }: Error) => void warned.push(name)
    process.on('warning', listen)
    let isAway = false
    let runs = 0
    const last = defineWork('last', (_: null, ctx) => {
      runs += 1
      isAway = true
      return ctx.result(runs)
    })
    const { w, clock, until } = world(ground, { work: [last], autoStart: false }, (ports) => ({
      ...ports,
      store: {
        ...ports.store,
        set: (key: string, value: string, ttl?: number) => {
          if (isAway) throw new Error('away')
          return ports.store.set(key, value, ttl)
        },
      },
    }))
    const handles = await until(w.enqueueMany(Array.from({ length: 20 }, () => last(null))))
    w.start()
    await clock.advance(1_000)
    expect(runs).toBe(20)
    isAway = false
    await until(Promise.all(handles.map((handle) => handle.result())))
    process.off('warning', listen)

    expect(warned.filter((name) => name.includes('MaxListeners'))).toEqual([])
  })
})
