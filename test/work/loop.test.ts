import { describe, expect, it, vi } from 'vitest'
import {
  adaptiveDelay,
  balancedDoer,
  type Doer,
  defineWork,
  memoryQueue,
  priorityDoer,
  unlimitedDoer,
} from '../../src/index.js'
import type { Ports, PulledWork, Queue } from '../../src/ports/ports.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { body, GROUNDS, gate, isOnMemory, PLAIN_GROUNDS, until, world } from './support.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

describe.each(GROUNDS)('the loop on %s ports', (ground) => {
  // S73
  it('leaves what it does not accept in the queue', async () => {
    const { w, clock, size, events } = world(ground, { work: [noop], accept: () => false })
    await w.enqueue(noop(null)).accepted()
    await clock.advance(200)

    expect(events.map((event) => event.kind)).toEqual(['queued'])
    expect(await size()).toBe(1)
  })

  // S73
  it('shares work between instances that accept different types', async () => {
    const ping = defineWork('ping', (_: null, ctx) => ctx.result('P'))
    const pong = defineWork('pong', (_: null, ctx) => ctx.result('Q'))
    const started = { a: [] as string[], b: [] as string[] }
    const on = (into: string[]) => (event: { kind: string; type?: string }) => {
      if (event.kind === 'started') into.push(event.type!)
    }
    const { w, another, until } = world(ground, {
      work: [ping, pong],
      accept: (i) => i.type === 'ping',
      onEvent: on(started.a),
    })
    another({ work: [ping, pong], accept: (i) => i.type === 'pong', onEvent: on(started.b) })

    const results = Promise.all([w.enqueue(ping(null)).result(), w.enqueue(pong(null)).result()])
    expect(await until(results)).toEqual(['P', 'Q'])
    expect(started).toEqual({ a: ['ping'], b: ['pong'] })
  })

  // S74
  it('gives back what its own doer has no room for', async () => {
    const full: Doer = { available: () => 0, do: vi.fn(), done: async () => undefined }
    const held = defineWork('held', (_: null, ctx) => ctx.void(), { doer: full })
    const { w, clock, size } = world(ground, { work: [held] })
    await w.enqueue(held(null)).accepted()
    await clock.advance(100)

    expect(full.do).not.toHaveBeenCalled()
    expect(await size()).toBe(1)
  })

  // S79
  it('serves several queues, and dead-letters an unknown type on the queue it came from', async () => {
    const clock = new FakeClock()
    const qB = memoryQueue({ clock })
    const b = defineWork('b', (_: null, ctx) => ctx.result('b'), { queue: qB })
    const a = defineWork('a', (_: null, ctx) => ctx.result('a'))
    // A custom queue does not announce what is pushed: only a poll finds it.
    const here = world(ground, { work: [a, b], pollInterval: 25 }, (ports) => ports)

    expect(await here.until(here.w.enqueue(a(null)).result())).toBe('a')
    expect(await here.until(here.w.enqueue(b(null)).result())).toBe('b')
    await here.clock.settle()
    expect(qB.size()).toBe(0)
    expect(here.w.capabilities.atomic).toBe(false)
    qB.push(body({ type: 'ghost', attempt: 3, retry: { attempts: 3 } }))
    await here.clock.advance(100)
    expect(qB.dead.length).toBe(1)
    expect((await here.dead()) ?? 0).toBe(0)
  })

  // S81
  it('runs no more at the same time than its doer allows', async () => {
    const hold = gate()
    let running = 0
    let peak = 0
    const slow = defineWork('slow', async (_: null, ctx) => {
      running += 1
      peak = Math.max(peak, running)
      await hold.promise
      running -= 1
      return ctx.void()
    })
    const { w, clock, until } = world(ground, { work: [slow], doer: priorityDoer({ max: 2 }) })
    const all = Promise.all(Array.from({ length: 5 }, () => w.enqueue(slow(null)).result()))
    await clock.advance(50)
    expect(w.active().filter((active) => active.status === 'running').length).toBeLessThanOrEqual(2)
    hold.open()
    await until(all)
    await clock.settle()

    expect(peak).toBe(2)
    expect(w.active()).toEqual([])
  })

  // S82
  it('keeps a small doer busy without waiting for the poll', async () => {
    const { w, clock, until } = world(ground, { work: [noop], doer: priorityDoer({ max: 2 }), pollInterval: 1_000 })
    const startAt = clock.now()
    await until(Promise.all(Array.from({ length: 200 }, () => w.enqueue(noop(null)).result())))

    expect(clock.now() - startAt).toBeLessThan(1_000)
  })

  // S83
  it('says when it was last alive', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.result('ok')
    })
    const { w, clock, ports, until } = world(ground, { work: [slow], visibility: 100, heartbeat: 6 })
    const handle = w.enqueue(slow(null))
    const result = handle.result()
    await clock.advance(60)
    // Natively it is stored with the lease.
    if (isOnMemory && ground !== 'native') expect(await ports.store.get(`work:hb:${handle.id}`)).toBeDefined()
    await clock.advance(1_000)
    hold.open()

    expect(await until(result)).toBe('ok')
  })

  // S46 W8 W32
  it('starts idle work and stops an idle system without waiting for the poll', async () => {
    const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))
    const { w, clock, until } = world(ground, { work: [add], pollInterval: 1_000 })
    await clock.advance(10_000)
    const startAt = clock.now()
    expect(await until(w.enqueue(add(1)).result())).toBe(2)
    expect(clock.now() - startAt).toBeLessThan(100)
    const stopAt = clock.now()
    await until(w.stop())

    expect(clock.now() - stopAt).toBeLessThan(50)
  })

  // S87
  it('skips the queue, and retries through it', async () => {
    const seen: number[] = []
    const echo = defineWork('echo', (v: string, ctx) => ctx.result(v), { skipQueue: true })
    const once = defineWork(
      'once',
      (_: null, ctx) => {
        seen.push(ctx.attempt)
        if (ctx.attempt === 1) throw new Error('first')
        return ctx.result(10)
      },
      { skipQueue: true, retry: { attempts: 3, base: 1 } },
    )
    const { w, until, size, clock } = world(ground, { work: [echo, once] })
    const handle = w.enqueue(echo('hi'))

    expect(await until(handle.result())).toBe('hi')
    expect(await until(handle.group())).toBe('hi')
    await clock.settle()
    expect(await size()).toBe(0)
    expect(await until(w.enqueue(once(null)).result())).toBe(10)
    expect(seen).toEqual([1, 2])
  })

  // S88
  it('survives a doer that throws', async () => {
    const boom: Doer = {
      available: () => 10,
      do: () => {
        throw new Error('doer boom')
      },
      done: async () => undefined,
    }
    const queued = defineWork('queued', (_: null, ctx) => ctx.void(), { doer: boom })
    const direct = defineWork('direct', (_: null, ctx) => ctx.void(), { doer: boom, skipQueue: true })
    const { w, clock, errors, size } = world(ground, { work: [queued, direct] })
    await w.enqueue(queued(null)).accepted()
    await clock.advance(20)
    expect(w.active()).toEqual([])
    expect(errors.map((e) => e.phase)).toContain('queue')
    expect(await size()).toBe(1)

    await expect(w.enqueue(direct(null)).result()).rejects.toThrow('doer boom')
    expect(w.active()).toEqual([])
  })

  // S89
  it('pauses while back-pressure says so', async () => {
    let isPaused = true
    const { w, clock, events } = world(ground, { work: [noop], backpressure: () => (isPaused ? 30 : 0) })
    await w.enqueue(noop(null)).accepted()
    await clock.advance(40)
    expect(events.map((event) => event.kind)).not.toContain('started')
    isPaused = false
    await clock.advance(40)

    expect(events.map((event) => event.kind)).toContain('started')
  })

  // S89
  it('goes on after back-pressure itself failed', async () => {
    let calls = 0
    const ok = defineWork('ok', (_: null, ctx) => ctx.result('ok'))
    const { w, until, errors } = world(ground, {
      work: [ok],
      backpressure: () => {
        calls += 1
        if (calls <= 2) throw new Error('gauge')
        return 0
      },
    })

    expect(await until(w.enqueue(ok(null)).result())).toBe('ok')
    expect(errors.map((e) => e.phase)).toContain('queue')
  })

  // S90
  it('calls onBacklog when it stays behind', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.void()
    })
    const rung: { active: number; backedUpForMs: number; queued: number | undefined }[] = []
    const { w, clock, until } = world(ground, {
      work: [slow],
      doer: priorityDoer({ max: 2 }),
      onBacklog: (info) => rung.push(info),
      backlogAfterMs: 25,
      backlogEveryMs: 15,
    })
    const all = Promise.all(Array.from({ length: 8 }, () => w.enqueue(slow(null)).result()))
    await clock.advance(70)

    expect(rung.length).toBeGreaterThanOrEqual(2)
    expect(rung[0]?.active).toBeGreaterThan(0)
    expect(rung[0]?.backedUpForMs).toBeGreaterThanOrEqual(20)
    if (ground === 'minimal') expect(rung[0]?.queued).toBeUndefined()
    else expect(rung[0]?.queued).toBeGreaterThan(0)
    hold.open()
    await until(all)
  })

  it('balances groups and lets higher priority go first', async () => {
    const order: string[] = []
    const hold = gate()
    const job = defineWork('job', async (name: string, ctx) => {
      order.push(name)
      if (order.length === 1) await hold.promise
      return ctx.void()
    })
    const { w, clock, until } = world(ground, { work: [job], doer: balancedDoer({ max: 1 }) })
    const first = w.enqueue(job('first'), { group: 'A' }).result()
    await clock.advance(10)
    const rest = [
      w.enqueue(job('low'), { group: 'B', priority: 0 }).result(),
      w.enqueue(job('high'), { group: 'B', priority: 5 }).result(),
    ]
    await clock.advance(10)
    hold.open()
    await until(Promise.all([first, ...rest]))

    expect(order[0]).toBe('first')
    expect([...order].sort()).toEqual(['first', 'high', 'low'])
  })

  // W32
  it('gives back at stop what has not started, and lets what runs finish', async () => {
    const hold = gate()
    let isDone = false
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      isDone = true
      return ctx.void()
    })
    const { w, clock, size } = world(ground, { work: [slow], doer: priorityDoer({ max: 1, buffer: 3 }) })
    await w.enqueueMany([slow(null), slow(null), slow(null)])
    await clock.advance(20)
    expect(w.active().length).toBe(3)
    const stopped = w.stop()
    await clock.advance(10)
    hold.open()
    await clock.advance(10)
    await stopped

    expect(isDone).toBe(true)
    expect(await size()).toBe(2)
    expect(w.active()).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('aborts what does not finish in time at stop', async () => {
    let reason: unknown
    const stuck = defineWork('stuck', (_: null, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        reason = ctx.signal.reason
      })
      return new Promise<never>(() => undefined)
    })
    const { w, clock } = world(ground, { work: [stuck] })
    await w.enqueue(stuck(null)).accepted()
    await clock.advance(20)
    const stopped = w.stop()
    await clock.advance(5_500)
    await stopped

    expect(reason).toMatchObject({ code: 'SHUTDOWN_DEADLINE' })
  })

  it('starts again after a stop', async () => {
    const { w, clock, until } = world(ground, { work: [noop] })
    await until(w.stop())
    const handle = w.enqueue(noop(null))
    await clock.advance(100)
    w.start()

    expect(await until(handle.result())).toBeUndefined()
  })

  it('takes adaptiveDelay as back-pressure', async () => {
    const bad = defineWork(
      'bad',
      () => {
        throw new Error('x')
      },
      { retry: { attempts: 1 } },
    )
    const { w, until } = world(ground, {
      work: [bad, noop],
      doer: unlimitedDoer({ available: 1 }),
      backpressure: adaptiveDelay({ base: 100 }),
    })
    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow()
    await until(w.enqueue(noop(null)).result())
  })
})

describe.each(PLAIN_GROUNDS)('queues with faults, on %s ports', (ground) => {
  const faulty = (change: (queue: Queue) => Partial<Queue>) => (ports: Ports) => ({
    ...ports,
    queue: { ...ports.queue, ...change(ports.queue) },
  })

  // S75
  it('claims again after a claim that failed', async () => {
    let isBroken = true
    const ok = defineWork('ok', (_: null, ctx) => ctx.result('ok'))
    const { w, until, errors } = world(
      ground,
      { work: [ok] },
      faulty((queue) => ({
        pop: (max, visibility) => {
          if (isBroken) {
            isBroken = false
            throw new Error('pop')
          }
          return queue.pop(max, visibility)
        },
      })),
    )

    expect(await until(w.enqueue(ok(null)).result())).toBe('ok')
    expect(errors.map((e) => e.phase)).toContain('queue')
  })

  // S76
  it('puts off what arrives too early by pushing it again, and never fails it', async () => {
    const pushes: number[] = []
    let acks = 0
    let fails = 0
    let given = false
    const early = world(
      ground,
      { work: [noop] },
      faulty(() => ({
        push: (_body, options) => {
          pushes.push(options?.delay ?? 0)
        },
        pop: (): PulledWork[] => {
          if (given) return []
          given = true
          return [{ body: body({ startAt: early.clock.now() + 60_000 }), handle: 'h', attempt: 1 }]
        },
        ack: () => {
          acks += 1
        },
        fail: () => {
          fails += 1
        },
      })),
    )
    await early.clock.advance(100)

    expect(acks).toBe(1)
    expect(fails).toBe(0)
    expect(pushes.at(-1)).toBeGreaterThan(50_000)
    expect(early.w.metrics.get('work.rescheduled', { type: 'noop' })?.value).toBe(1)
    expect(early.w.metrics.get('work.started', { type: 'noop' })?.value).toBe(0)
    expect(early.w.metrics.get('work.reschedule_time', { type: 'noop' })?.summary?.min).toBeGreaterThan(50_000)
  })

  // S77 S78
  it('neither spins on nor buries work that is never due', async () => {
    let pushes = 0
    let acks = 0
    let pops = 0
    const early = world(
      ground,
      { work: [noop], pollInterval: 10 },
      faulty(() => ({
        push: () => {
          pushes += 1
        },
        pop: (max): PulledWork[] => {
          pops += 1
          return Array.from({ length: max }, (_, i) => ({
            body: body({ id: `x${i}`, startAt: early.clock.now() + 60_000 }),
            handle: `h${pops}-${i}`,
            attempt: 1,
          }))
        },
        ack: () => {
          acks += 1
        },
      })),
    )
    await early.clock.advance(90)

    expect(pops).toBeLessThan(40)
    expect(pushes).toBeGreaterThan(2)
    expect(acks).toBe(pushes)
    expect(early.memoryQueue.dead).toEqual([])
  })

  // S80 W11
  it('is not held up by a queue that is broken', async () => {
    const clock = new FakeClock()
    const good = memoryQueue({ clock })
    const fine = defineWork('fine', (_: null, ctx) => ctx.result('fine'), { queue: good })
    const { w, clock: time } = world(
      ground,
      { work: [fine] },
      faulty(() => ({
        pop: () => {
          throw new Error('down')
        },
      })),
    )
    const startAt = time.now()

    expect(await until(time, w.enqueue(fine(null)).result())).toBe('fine')
    expect(time.now() - startAt).toBeLessThan(200)
  })

  // S82
  it('keeps going with a queue that gives ten at a time', async () => {
    const { w, clock, until } = world(
      ground,
      { work: [noop], pollInterval: 1_000 },
      faulty((queue) => ({ pop: (max, visibility) => queue.pop(Math.min(10, max), visibility), maxPop: 10 })),
    )
    const startAt = clock.now()
    await until(Promise.all(Array.from({ length: 200 }, () => w.enqueue(noop(null)).result())))

    expect(clock.now() - startAt).toBeLessThan(1_000)
  })

  // S90
  it('reports without a number when the queue does not know its size', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.void()
    })
    const rung: (number | undefined)[] = []
    const { w, clock, until } = world(
      ground,
      {
        work: [slow],
        doer: priorityDoer({ max: 2 }),
        onBacklog: ({ queued }) => rung.push(queued),
        backlogAfterMs: 25,
        backlogEveryMs: 15,
      },
      faulty(() => ({
        size: () => {
          throw new Error('size')
        },
      })),
    )
    const all = Promise.all(Array.from({ length: 8 }, () => w.enqueue(slow(null)).result()))
    await clock.advance(70)
    hold.open()
    await until(all)

    expect(rung.length).toBeGreaterThanOrEqual(1)
    expect(new Set(rung)).toEqual(new Set([undefined]))
  })

  // S84 W6
  it('reports a heartbeat that throws or rejects, and nothing else happens', async () => {
    for (const heartbeat of [
      () => {
        throw new Error('beat')
      },
      async () => {
        throw new Error('beat')
      },
    ]) {
      const hold = gate()
      const slow = defineWork('slow', async (_: null, ctx) => {
        await hold.promise
        return ctx.result('ok')
      })
      const { w, clock, until, errors } = world(
        ground,
        { work: [slow], visibility: 200, heartbeat: 20 },
        faulty(() => ({ heartbeat })),
      )
      const result = w.enqueue(slow(null)).result()
      await clock.advance(100)
      expect(errors.map((e) => e.phase)).toContain('queue')
      hold.open()
      expect(await until(result)).toBe('ok')
    }
  })
})

describe.each(GROUNDS)('a handler that stops when its signal fires, on %s ports', (ground) => {
  it('costs its item no attempt when its process shuts down', async () => {
    const attempts: number[] = []
    const polite = defineWork(
      'polite',
      (_: null, ctx) => {
        attempts.push(ctx.attempt)
        if (attempts.length > 1) return ctx.result('ok')
        return new Promise<never>((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
        })
      },
      { retry: { attempts: 1 } },
    )
    const here = world(ground, { work: [polite] })
    const result = here.w.enqueue(polite(null)).result()
    await here.clock.advance(20)
    const stopped = here.w.stop()
    await here.clock.advance(5_100)
    await stopped
    here.w.start()

    expect(await here.until(result)).toBe('ok')
    expect(attempts).toEqual([1, 1])
  })
})

describe.runIf(isOnMemory)('text that waits to be sent', () => {
  it('is bounded, beside the number of items', async () => {
    const big = defineWork('big', (_: string, ctx) => ctx.void())
    const { w } = world('native', { work: [big], autoStart: false })
    const text = 'x'.repeat(900_000)
    const sent = Array.from({ length: 30 }, () => w.enqueue(big(text)).accepted())
    const results = await Promise.allSettled(sent)

    expect(results.filter((r) => r.status === 'fulfilled').length).toBe(18)
    expect(results.find((r) => r.status === 'rejected')?.reason).toMatchObject({ code: 'BUFFER_FULL' })
  })
})
