import { describe, expect, it } from 'vitest'
import {
  createWork,
  defineWork,
  type WorkInstanceOptions,
  type WorkOptions,
  type WorkSystemOptions,
} from '../../src/index.js'
import { world } from './support.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

describe('bad options', () => {
  it.each([
    [{ pollInterval: 0 }, 'createWork.pollInterval'],
    [{ visibility: -1 }, 'createWork.visibility'],
    [{ visibility: 'long' }, 'createWork.visibility'],
    [{ redriveCount: 1.5 }, 'createWork.redriveCount'],
    [{ retry: { attempts: 0 } }, 'createWork.retry.attempts'],
    [{ portRetry: { attempts: -1 } }, 'createWork.portRetry.attempts'],
    [{ onEvent: 'log' }, 'createWork.onEvent'],
    [{ keepDead: Number.NaN }, 'createWork.keepDead'],
    [{ now: 5 }, 'createWork.now'],
    [{ doer: 5 }, 'createWork.doer'],
    [{ doer: { do: () => undefined } }, 'createWork.doer'],
    [{ prefix: 7 }, 'createWork.prefix'],
    [{ keepAlive: 'yes' }, 'createWork.keepAlive'],
  ])('of createWork are refused by name: %o', (options, name) => {
    expect(() => createWork({ autoStart: false, ...options } as WorkSystemOptions)).toThrow(name)
  })

  it('of createWork that are misspelt get a suggestion', () => {
    expect(() => createWork({ pollIntervall: 5 } as WorkSystemOptions)).toThrow(/Did you mean "pollInterval"/)
  })

  it.each([
    [{ retry: { factor: 0 } }, 'retry.factor'],
    [{ retris: {} }, 'Did you mean "retry"'],
    [{ delay: -5 }, 'work "x".delay'],
    [{ skipQueue: 'yes' }, 'work "x".skipQueue'],
    [{ timeout: -1 }, 'work "x".timeout'],
    [{ doer: 5 }, 'work "x".doer'],
    [{ onFailure: 'abort' }, 'work "x".onFailure'],
  ])('of a type are refused when it is defined: %o', (options, name) => {
    expect(() => defineWork('x', (_: null, ctx) => ctx.void(), options as WorkOptions<null>)).toThrow(name)
  })

  it.each([
    [{ delay: Number.NaN }, 'enqueue.delay'],
    [{ runAt: 'tomorrow' }, 'enqueue.runAt'],
    [{ priority: Infinity }, 'enqueue.priority'],
    [{ tags: 'one' }, 'enqueue.tags'],
    [{ tags: Array.from({ length: 33 }, (_, i) => `t${i}`) }, 'at most 32 tags'],
    [{ tags: ['x'.repeat(257)] }, 'tags of at most 256 characters'],
    [{ delay: -5 }, 'enqueue.delay'],
    [{ timeout: -1 }, 'enqueue.timeout'],
    [{ skipQueue: 'yes' }, 'enqueue.skipQueue'],
    [{ retry: { jitter: 7 } }, 'enqueue.retry.jitter'],
    [{ dely: 5 }, 'Did you mean "delay"'],
  ])('of an enqueue are refused and leave nothing behind: %o', async (options, name) => {
    const { w, size } = world('native', { work: [noop], autoStart: false })

    expect(() => w.enqueue(noop(null), options as WorkInstanceOptions)).toThrow(name)
    expect(await size()).toBe(0)
  })

  it('are refused for what is no work, no name, and two types of one name', () => {
    const { w } = world('native', { work: [noop], autoStart: false })
    const untyped = w.enqueue as unknown as (work: unknown, input?: unknown) => unknown

    expect(() => untyped({ id: 1 })).toThrow(/must come from a builder/)
    expect(() => untyped('nop', null)).toThrow(/Did you mean "noop"/)
    const other = defineWork('noop', (_: null, ctx) => ctx.result(1))
    expect(() => createWork({ work: [noop, other] as const, autoStart: false })).toThrow(/registered twice/)
    expect(() => defineWork('', (_: null, ctx) => ctx.void())).toThrow(/non-empty string/)
    expect(() => defineWork('x', 5 as never)).toThrow(/must be a function/)
  })

  it('of a codec that does not give text reject the handle, and leave nothing behind', async () => {
    const broken = defineWork('broken', (_: null, ctx) => ctx.void(), {
      codec: { stringify: () => 5 as never, parse: JSON.parse },
    })
    const { w, size } = world('native', { work: [broken], autoStart: false })

    await expect(w.enqueue(broken(null)).result()).rejects.toMatchObject({ code: 'ENCODE_FAILED' })
    expect(await size()).toBe(0)
  })
})

describe('payloads that are too large', () => {
  const big = 'x'.repeat(2 * 1024 * 1024)

  it('are refused at enqueue, with the limit in the message', async () => {
    const echo = defineWork('echo', (s: string, ctx) => ctx.result(s.length))
    const { w, until } = world('native', { work: [echo] })

    await expect(until(w.enqueue(echo(big)).accepted())).rejects.toMatchObject({ code: 'TOO_LARGE' })
  })

  it('dead-letter the item as poison when they are its result, and do not loop', async () => {
    let calls = 0
    const grow = defineWork('grow', (_: null, ctx) => {
      calls += 1
      return ctx.result(big)
    })
    const { w, until, events } = world('native', { work: [grow] })

    await expect(until(w.enqueue(grow(null)).result())).rejects.toThrow(/1 ?MiB|1048576|1,048,576/)
    expect(calls).toBe(1)
    expect(events.find((event) => event.kind === 'failed')).toMatchObject({ class: 'poison', willRetry: false })
  })
})

describe('options of an item', () => {
  it('are those given now, over those computed, over those of the type, over those of the system', async () => {
    const seen: unknown[] = []
    const job = defineWork('job', (_: { n: number }, ctx) => ctx.void(), {
      priority: 1,
      group: 'type',
      retry: { attempts: 7, base: 3 },
      options: (i) => ({ priority: 2, retry: { base: i.n } }),
    })
    const { w, mem } = world('wrapped', { work: [job], autoStart: false, retry: { factor: 5, attempts: 9 } })
    await w.enqueue(job({ n: 4 }), { retry: { max: 6 }, tags: ['a'] }).accepted()
    await w.enqueue(job({ n: 4 }), { priority: 3, group: 'now' }).accepted()
    for (const pulled of mem.queue.pop(10, 1_000)) seen.push(JSON.parse(pulled.body))

    expect(seen).toMatchObject([
      { priority: 3, group: 'now' },
      { priority: 2, group: 'type', tags: ['a'], retry: { attempts: 7, base: 4, factor: 5, max: 6, jitter: 0.5 } },
    ])
  })

  it('let a deadline win over a timeout', async () => {
    const job = defineWork('job', (_: null, ctx) => ctx.void(), { timeout: 500 })
    const { w, mem, clock } = world('wrapped', { work: [job], autoStart: false })
    const now = clock.now()
    await w.enqueue(job(null)).accepted()
    await w.enqueue(job(null), { deadline: now + 9, timeout: 5 }).accepted()
    const deadlines = mem.queue.pop(10, 1_000).map((pulled) => JSON.parse(pulled.body).deadline - now)

    expect(deadlines).toEqual([500, 9])
  })
})

describe('what a caller does with the options afterwards', () => {
  it('does not change the policy of a type or of a system', async () => {
    const retry = { attempts: 7 }
    const job = defineWork('job', (_: null, ctx) => ctx.void(), { retry })
    const system = { base: 5 }
    const { w, mem } = world('wrapped', { work: [job], autoStart: false, retry: system })
    await w.enqueue(job(null)).accepted()
    retry.attempts = 1
    system.base = 9
    await w.enqueue(job(null)).accepted()
    const policies = mem.queue.pop(10, 1_000).map((pulled) => JSON.parse(pulled.body).retry)

    expect(policies).toMatchObject([
      { attempts: 7, base: 5 },
      { attempts: 7, base: 5 },
    ])
  })
})

describe('an instant that is computed from the input', () => {
  it('wins over a delay that is given', async () => {
    const job = defineWork('job', (_: number, ctx) => ctx.void(), { options: (runAt) => ({ runAt }) })
    const { w, mem, clock } = world('wrapped', { work: [job], autoStart: false })
    await w.enqueue(job(clock.now() + 400), { delay: 10 }).accepted()
    await clock.advance(399)
    expect(mem.queue.pop(1, 1_000)).toEqual([])
    await clock.advance(1)

    expect(mem.queue.pop(1, 1_000).length).toBe(1)
  })
})

describe('enqueueMany', () => {
  it('takes all or none', async () => {
    const { w, size } = world('native', { work: [noop], autoStart: false })

    await expect(w.enqueueMany([noop(null), 5 as never])).rejects.toThrow(/must come from a builder/)
    expect(await size()).toBe(0)
  })
})

describe('hooks that fail', () => {
  it('do not keep work from being enqueued when it is the tracer', async () => {
    const { w, until, errors } = world('native', {
      work: [noop],
      trace: () => {
        throw new Error('tracer')
      },
    })

    expect(await until(w.enqueue(noop(null)).accepted())).toMatchObject({ kind: 'created' })
    expect(errors.map((e) => e.phase)).toEqual(['queue'])
  })

  it('fail the run when it is the codec of the group that gives no text', async () => {
    const job = defineWork('job', (_: null, ctx) => ctx.result(1), {
      codec: { stringify: JSON.stringify, parse: JSON.parse },
      retry: { attempts: 1 },
    })
    const { w, until } = world('native', {
      work: [job],
      codec: { stringify: () => undefined as never, parse: JSON.parse },
    })

    await expect(until(w.enqueue(job(null)).result())).rejects.toThrow(/must return a string/)
  })
})

describe('a second type of the same name', () => {
  it('is refused when it is enqueued, instead of running the handler of the first', () => {
    const other = defineWork('noop', (_: null, ctx) => ctx.result(1))
    const { w } = world('native', { work: [noop], autoStart: false })

    expect(() => w.enqueue(other(null))).toThrow(/registered twice/)
  })
})
