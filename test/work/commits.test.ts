import { describe, expect, it } from 'vitest'
import { defineWork, formatPrometheus, memoryQueue, RetryAbort } from '../../src/index.js'
import type { Ports, Queue, Store } from '../../src/ports/ports.js'
import { body, GROUNDS, gate, isOnMemory, PLAIN_GROUNDS, world } from './support.js'

type Phase = { readonly phase: string }
const phases = (errors: readonly Phase[]) => [...new Set(errors.map((e) => e.phase))]

/** Ports with some methods replaced. */
const change =
  (over: { readonly queue?: (queue: Queue) => Partial<Queue>; readonly store?: (store: Store) => Partial<Store> }) =>
  (ports: Ports): Ports => ({
    ...ports,
    queue: { ...ports.queue, ...over.queue?.(ports.queue) },
    store: { ...ports.store, ...over.store?.(ports.store) },
  })

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

describe.runIf(isOnMemory)('an enqueue whose push fails', () => {
  // S95
  it('rejects with the error of the push, and takes back the hold of the group', async () => {
    const increments: number[] = []
    const { w } = world(
      'wrapped',
      { work: [noop] },
      change({
        queue: () => ({
          push: () => {
            throw new Error('push fail')
          },
        }),
        store: (store) => ({
          increment: (key, by, ttl) => {
            if (key.endsWith(':open')) increments.push(by)
            return store.increment!(key, by, ttl)
          },
        }),
      }),
    )

    await expect(w.enqueue(noop(null)).result()).rejects.toThrow('push fail')
    expect(increments).toEqual([1, -1])
  })

  // S95
  it('still rejects with the first error when taking back fails too', async () => {
    let isDown = false
    const { w, errors } = world(
      'wrapped',
      { work: [noop] },
      change({
        queue: () => ({
          push: () => {
            isDown = true
            throw new Error('push fail')
          },
        }),
        store: (store) => ({
          increment: (key, by, ttl) => {
            if (isDown) throw new Error('increment fail')
            return store.increment!(key, by, ttl)
          },
        }),
      }),
    )

    await expect(w.enqueue(noop(null)).group()).rejects.toThrow('push fail')
    expect(phases(errors)).toContain('commit')
  })
})

describe.each(PLAIN_GROUNDS)('ports that fail, on %s ports', (ground) => {
  // S102 W6
  it('reports a failed enqueue that no caller awaits', async () => {
    const { w, clock, errors } = world(
      ground,
      { work: [noop] },
      change({
        queue: () => ({
          push: async () => {
            throw new Error('push down')
          },
        }),
      }),
    )
    w.enqueue(noop(null))
    await clock.settle()

    expect(errors.map((e) => String(e.error))).toContain('Error: push down')
    expect(phases(errors)).toContain('queue')
  })

  // S61 W1
  it('does not lose an item whose retry cannot be pushed', async () => {
    let calls = 0
    let pushes = 0
    let isBroken = true
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new Error('always')
      },
      { retry: { attempts: 3, base: 1 } },
    )
    const { w, clock, until, size, errors } = world(
      ground,
      { work: [bad] },
      change({
        queue: (q) => ({
          push: (...args) => {
            pushes += 1
            if (pushes > 1 && isBroken) throw new Error('push broken')
            return q.push(...args)
          },
        }),
      }),
    )
    const failed = w.enqueue(bad({})).result()
    failed.catch(() => undefined)
    await clock.advance(1_000)
    expect(await size()).toBe(1)
    expect(calls).toBe(1)
    expect(phases(errors)).toContain('commit')
    isBroken = false

    await expect(until(failed)).rejects.toThrow('always')
    expect(calls).toBe(3)
  })

  // S96 S97 W3
  it('run a handler once, however often its outcome cannot be written', async () => {
    for (const skipQueue of [true, false]) {
      let calls = 0
      let isBroken = true
      const once = defineWork(
        'once',
        (_: null, ctx) => {
          calls += 1
          return ctx.result('ok')
        },
        { skipQueue },
      )
      const { w, clock, until, errors } = world(
        ground,
        { work: [once], visibility: 60, heartbeat: 20 },
        change({
          store: (store) => ({
            set: (key, value, ttl) => {
              if (isBroken && key.includes('result:')) throw new Error('disk full')
              return store.set(key, value, ttl)
            },
          }),
        }),
      )
      const result = w.enqueue(once(null)).result()
      result.catch(() => undefined)
      await clock.advance(500)
      expect(calls).toBe(1)
      expect(phases(errors)).toEqual(['commit'])
      isBroken = false

      expect(await until(result)).toBe('ok')
      expect(calls).toBe(1)
    }
  })

  it('report a store that cannot be written once, however many outcomes wait for it', async () => {
    let isBroken = true
    const answer = defineWork('answer', (_: null, ctx) => ctx.result('ok'))
    const { w, clock, until, errors } = world(
      ground,
      { work: [answer] },
      change({
        store: (store) => ({
          set: (key, value, ttl) => {
            if (isBroken && key.includes('result:')) throw new Error('disk full')
            return store.set(key, value, ttl)
          },
        }),
      }),
    )
    const play = async () => {
      const results = Array.from({ length: 50 }, () => w.enqueue(answer(null)).result())
      for (const result of results) result.catch(() => undefined)
      await clock.advance(5_000)
      isBroken = false
      await until(Promise.all(results))
    }
    await play()
    expect(errors.map(({ error }) => String(error))).toEqual(['Error: disk full'])

    isBroken = true
    await play()
    expect(errors.map(({ phase }) => phase)).toEqual(['commit', 'commit'])
  })

  // S96
  it('is not disturbed by a publish that fails', async () => {
    let calls = 0
    const once = defineWork('once', (_: null, ctx) => {
      calls += 1
      return ctx.result('ok')
    })
    const { w, clock, until, errors } = world(ground, { work: [once] }, (ports) => ({
      ...ports,
      pubsub: {
        ...ports.pubsub,
        publish: () => {
          throw new Error('publish')
        },
      },
    }))

    for (const skipQueue of [false, true]) {
      calls = 0
      const handle = w.enqueue(once(null), { skipQueue })
      expect(await until(handle.result())).toBe('ok')
      await clock.advance(500)
      expect(calls).toBe(1)
    }
    expect(phases(errors).filter((phase) => phase !== 'commit')).toEqual([])
  })

  // S98 W7
  it('queues each child once when one of their pushes fails', async () => {
    const ran: number[] = []
    let pushes = 0
    const child = defineWork('child', (n: number, ctx) => {
      ran.push(n)
      return ctx.void()
    })
    const root = defineWork('root', (_: null, ctx) => ctx.queue([child(1), child(2), child(3)]))
    const { w, until } = world(
      ground,
      { work: [child, root] },
      change({
        queue: (queue) => ({
          push: (...args) => {
            pushes += 1
            if (pushes === 3) throw new Error('once')
            return queue.push(...args)
          },
        }),
      }),
    )
    await until(w.enqueue(root(null)))

    expect(ran.sort()).toEqual([1, 2, 3])
  })

  it('resolves waiters when every message on the channel is lost', async () => {
    const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))
    const { w, another, until } = world(ground, { work: [add], accept: () => false }, (ports) => ({
      ...ports,
      pubsub: { publish: () => undefined, subscribe: () => () => undefined },
    }))
    another({ work: [add], accept: () => true })

    expect(await until(w.enqueue(add(1)).result())).toBe(2)
  })
})

describe.each(GROUNDS)('groups and waiting on %s ports', (ground) => {
  // S99
  it('reports a group that ended while no caller waited, once, and no other group', async () => {
    const unhandled: string[] = []
    const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))
    const { w, clock, until } = world(ground, {
      work: [add],
      unhandledWorkGroup: ({ groupId, lastResult, states }) => {
        unhandled.push(`${groupId} ${lastResult} ${states.map((s) => s.status).join()}`)
      },
    })
    const single = w.enqueue(add(1))
    await clock.advance(200)
    expect(unhandled).toEqual([`${single.groupId} 2 success`])
    await until(w.enqueue(add(2)))
    await until(w.enqueue(add(3)).result())
    await clock.advance(200)

    expect(unhandled.length).toBe(1)
  })

  // G7
  it('settles an empty fan-out immediately', async () => {
    const empty = defineWork('empty', (_: null, ctx) => ctx.queue([]))
    const { w, until } = world(ground, { work: [empty] })

    expect(await until(w.enqueue(empty(null)))).toBeUndefined()
  })

  it('closes a group when one of its items dies, and never rejects for it', async () => {
    const good = defineWork('good', (_: null, ctx) => ctx.result('good'))
    const bad = defineWork(
      'bad',
      () => {
        throw new Error('bad')
      },
      { retry: { attempts: 1 } },
    )
    const root = defineWork('root', (_: null, ctx) => ctx.queue([good(null), bad({})]))
    const { w, until } = world(ground, { work: [good, bad, root] })

    expect(await until(w.enqueue(root(null)))).toBe('good')
  })

  it('does not keep the contribution of a run that failed', async () => {
    let calls = 0
    const twice = defineWork(
      'twice',
      (_: null, ctx) => {
        calls += 1
        ctx.result('first')
        if (calls === 1) throw new Error('after the fact')
        return ctx.void()
      },
      { strictReturn: false, retry: { attempts: 2, base: 1 } },
    )
    const { w, until } = world(ground, { work: [twice] })

    expect(await until(w.enqueue(twice(null)))).toBeUndefined()
  })

  // S121
  it('is not disturbed by garbage on the channel', async () => {
    const hold = gate()
    const add = defineWork('add', async (n: number, ctx) => {
      await hold.promise
      return ctx.result(n)
    })
    const { w, ports, clock, until } = world(ground, { work: [add] })
    const handle = w.enqueue(add(9))
    const both = Promise.all([handle.result(), handle.group()])
    await clock.advance(10)
    for (const garbage of ['garbage', '{"kind":"done"}', 'null']) void ports.pubsub.publish(garbage)
    hold.open()

    expect(await until(both)).toEqual([9, 9])
  })

  it('can be waited for many times, from before and after the end', async () => {
    const add = defineWork('add', (n: number, ctx) => ctx.result(n))
    const { w, clock, until } = world(ground, { work: [add] })
    const handle = w.enqueue(add(1))
    const early = Promise.all([handle.result(), handle.result(), handle.group()])
    expect(await until(early)).toEqual([1, 1, 1])
    await clock.advance(5_000)

    expect(await until(Promise.all([handle.result(), handle.group()]))).toEqual([1, 1])
  })

  it('stops waiting after its timeout, or when its signal fires, and the work goes on', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.result('done')
    })
    const { w, until } = world(ground, { work: [slow] })
    const handle = w.enqueue(slow(null))
    await expect(until(handle.result({ timeout: 100 }))).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' })
    const controller = new AbortController()
    const waited = handle.result({ signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(waited).rejects.toThrow('enough')
    hold.open()

    expect(await until(handle.result())).toBe('done')
  })

  it('resolves on another instance that shares the ports', async () => {
    const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))
    const { w, another, until } = world(ground, { work: [add], autoStart: false })
    another({ work: [add] })

    expect(await until(w.enqueue(add(1)).result())).toBe(2)
  })

  // S123
  it('counts a success, and prints it for Prometheus', async () => {
    const p = defineWork('p', (_: null, ctx) => ctx.result(1))
    const { w, until } = world(ground, { work: [p] })
    await until(w.enqueue(p(null)))
    const value = (name: string) => w.metrics.get(`work.${name}`, { type: 'p' })
    const text = formatPrometheus(w.stats())

    for (const [name, expected] of Object.entries({ queued: 1, started: 1, succeeded: 1, failed: 0, active: 0 })) {
      expect([name, value(name)?.value]).toEqual([name, expected])
    }
    expect(value('peak_active')?.value).toBeGreaterThanOrEqual(1)
    for (const name of ['success_time', 'total_time', 'wait_time']) expect(value(name)?.summary?.count).toBe(1)
    expect(value('attempts')?.summary?.total).toBe(1)
    expect(text).toContain('work_succeeded{type="p"} 1')
    expect(text).toContain('# TYPE work_total_time histogram')
  })

  it('claims a key once for the whole fleet, and reads states', async () => {
    const claims: boolean[] = []
    const claimer = defineWork('claimer', async (_: null, ctx) => {
      claims.push(await ctx.claim('once'))
      const [own, unknown] = await ctx.states([ctx.id, 'missing'])
      return ctx.result({ own: own?.status, unknown: unknown === undefined })
    })
    const { w, until } = world(ground, { work: [claimer] })
    const first = await until(w.enqueue(claimer(null)).result())
    await until(w.enqueue(claimer(null)).result())

    expect(claims).toEqual([true, false])
    expect(first).toEqual({ own: 'running', unknown: true })
  })
})

describe.each(PLAIN_GROUNDS)('redrive into a queue that takes nothing, on %s ports', (ground) => {
  // S100
  it('leaves the dead letters where they are, and reports it', async () => {
    const here = world(ground, { work: [noop], autoStart: false })
    const dlq = memoryQueue({ clock: here.clock })
    let acks = 0
    const counting: Queue = {
      ...dlq,
      ack: (p) => {
        acks += 1
        dlq.ack(p)
      },
    }
    dlq.push(body({ attempt: 5 }))
    const queue: Queue = {
      ...here.ports.queue,
      push: () => {
        throw new Error('push broken')
      },
    }
    here.another({ work: [noop], queue, dlq: counting })
    await here.clock.advance(2_000)

    expect(acks).toBe(0)
    expect(dlq.size()).toBe(1)
    expect(phases(here.errors)).toContain('queue')
  })
})

describe.each(GROUNDS)('redrive on %s ports', (ground) => {
  // S100
  it('feeds dead letters back when there is nothing else to do', async () => {
    const ran: string[] = []
    const fixed = defineWork('noop', (_: null, ctx) => {
      ran.push(ctx.id)
      return ctx.void()
    })
    const here = world(ground, { work: [fixed], autoStart: false })
    const dlq = memoryQueue({ clock: here.clock })
    let acks = 0
    const counting: Queue = {
      ...dlq,
      ack: (p) => {
        acks += 1
        dlq.ack(p)
      },
    }
    dlq.push(body({ id: 'a', groupId: 'ga', attempt: 5 }))
    dlq.push(body({ id: 'b', groupId: 'gb', attempt: 5 }))
    dlq.push('not an envelope')
    const w = here.another({ work: [fixed], dlq: counting })
    await here.clock.advance(2_000)

    expect(ran.sort()).toEqual(['a', 'b'])
    expect(acks).toBe(3)
    expect(w.metrics.get('work.queued', { type: 'noop' })?.value).toBe(2)
    expect(w.metrics.get('work.succeeded', { type: 'noop' })?.value).toBe(2)
  })

  // S100
  it('never touches them when the count is 0', async () => {
    const here = world(ground, { work: [noop], autoStart: false })
    const dlq = memoryQueue({ clock: here.clock })
    dlq.push(body())
    here.another({ work: [noop], dlq, redriveCount: 0 })
    await here.clock.advance(2_000)

    expect(dlq.size()).toBe(1)
  })

  it('does not touch items that died for another reason than their attempts', async () => {
    if (ground === 'minimal' || !isOnMemory) return // Only the memory queue shows its dead letters as a queue.
    let calls = 0
    const bad = defineWork('bad', () => {
      calls += 1
      throw new RetryAbort(new Error('never'))
    })
    const here = world(ground, { work: [bad], autoStart: false })
    const w = here.another({ work: [bad], dlq: here.memoryQueue.deadQueue(), pollInterval: 1_000 })
    await w.enqueue(bad({})).accepted()
    await here.clock.advance(60_000)

    expect(calls).toBe(1)
  })

  // S101 W16
  it('runs an item that cannot succeed at most six times', async () => {
    if (ground === 'minimal' || !isOnMemory) return // Only the memory queue shows its dead letters as a queue.
    let calls = 0
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new Error('always')
      },
      { retry: { attempts: 1 } },
    )
    const here = world(ground, { work: [bad], autoStart: false })
    const w = here.another({ work: [bad], dlq: here.memoryQueue.deadQueue(), pollInterval: 1_000 })
    await w.enqueue(bad({})).accepted()
    await here.clock.advance(600_000)

    expect(calls).toBeGreaterThan(1)
    expect(calls).toBeLessThanOrEqual(6)
  })
})
