import { describe, expect, it } from 'vitest'
import {
  conditionMet,
  createWork,
  DEPENDENCY_TYPE,
  defineWork,
  dependency,
  RetryAbort,
  type Work,
  type WorkEvent,
} from '../../src/index.js'
import { GROUNDS, isOnMemory, PLAIN_GROUNDS, world } from './support.js'

const ok = { status: 'success' } as const
const dead = { status: 'dead' } as const

describe('a condition', () => {
  // S110
  it('is met by what has ended, and not by what is unknown', () => {
    expect(conditionMet('all-done', [ok, dead])).toBe(true)
    expect(conditionMet('all-done', [ok, undefined])).toBe(false)
    expect(conditionMet('all-success', [ok, dead])).toBe(false)
    expect(conditionMet({ count: 2 }, [ok, { status: 'failed' }, undefined])).toBe(true)
    expect(conditionMet({ count: 2, of: 'success' }, [ok, dead])).toBe(false)
    expect(conditionMet('all-success', [])).toBe(true)
    expect(conditionMet('all-done', [{ status: 'running' }])).toBe(false)
  })

  it('is refused with its reason where it makes no sense', () => {
    const leaf = defineWork('leaf', (_: null, ctx) => ctx.void())
    const on = [leaf(null)]
    expect(() => dependency({ on, queue: leaf(null), config: { count: -1 } })).toThrow('dependency config.count')
    expect(() => dependency({ on, queue: leaf(null), config: 'some' as never })).toThrow("'all-done'")
    expect(() => dependency({ on, queue: leaf(null), config: { of: 'tree' } as never })).toThrow('only .next')
    expect(() => dependency({ on, queue: {} as never })).toThrow('dependency queue')
    expect(() => dependency({ on: [3 as never], queue: leaf(null) })).toThrow('dependency on')
    expect(() => dependency({ on, queue: leaf(null), poll: 0 })).toThrow('dependency poll')
    expect(() => dependency({ on, queue: leaf(null), timout: 3 } as never)).toThrow('Did you mean "timeout"?')
  })
})

const types = () => {
  const ran: string[] = []
  const leaf = defineWork('leaf', (name: string, ctx) => {
    ran.push(name)
    return ctx.result(name)
  })
  const bad = defineWork('bad', (_: string): never => {
    throw new RetryAbort(new Error('never'))
  })
  return { ran, leaf, bad, work: [leaf, bad] as const }
}

const gatesOf = (events: readonly WorkEvent[], kind: WorkEvent['kind']) =>
  events.filter((event) => event.kind === kind && 'type' in event && event.type === DEPENDENCY_TYPE)

describe.each(GROUNDS)('a dependency on %s ports', (ground) => {
  // S111
  it('queues once what waits for both, however many systems share it', async () => {
    const { ran, leaf, work } = types()
    const { w, until, another, events } = world(ground, { work })
    another({ work })
    const [a, b] = [leaf('a'), leaf('b')]
    const gated = w.enqueue(dependency({ on: [a, b], queue: leaf('finalize'), poll: 10 }))
    await until(gated.accepted())
    void w.enqueue(a)
    await until(w.enqueue(b))

    expect(await until(gated)).toBe('finalize')
    expect(ran.filter((name) => name === 'finalize')).toHaveLength(1)
    expect(gatesOf(events, 'queued')).toHaveLength(1)
    expect(await until(gated.result())).toBeUndefined()
  })

  it('counts what has ended before it was enqueued', async () => {
    const { ran, leaf, work } = types()
    const { w, until } = world(ground, { work })
    const a = leaf('a')
    await until(w.enqueue(a))

    await until(w.enqueue(dependency({ on: a.id, queue: [leaf('b'), leaf('c')] })))

    expect(ran.sort()).toEqual(['a', 'b', 'c'])
  })

  it('fires when it waits for nothing, and when enough members have ended', async () => {
    const { ran, leaf, bad, work } = types()
    const { w, until } = world(ground, { work })
    await until(w.enqueue(dependency({ on: [], queue: leaf('immediately') })))
    const [a, b] = [bad('a'), leaf('b')]
    const some = w.enqueue(dependency({ on: [a, b, 'never'], queue: leaf('two of three'), config: { count: 2 } }))
    void w.enqueue(a)
    void w.enqueue(b)
    await until(some)

    expect(ran).toEqual(['immediately', 'b', 'two of three'])
  })

  // S112
  it('gives up when its time is over: nothing runs, and its group completes', async () => {
    const { ran, leaf, work } = types()
    const { w, until, clock, events } = world(ground, { work })
    const gated = w.enqueue(dependency({ on: 'does-not-exist', queue: leaf('b'), poll: 10, timeout: 30 }))
    const began = clock.now()

    expect(await until(gated)).toBeUndefined()
    expect(clock.now() - began).toBeLessThan(1_000)
    await expect(until(gated.result())).rejects.toThrow('dependency: timed out waiting for [does-not-exist]')
    expect(ran).toEqual([])
    expect(gatesOf(events, 'failed')).toHaveLength(1)
  })

  // S112
  it.runIf(isOnMemory)('treats a record that cannot be read as missing', async () => {
    const { ran, leaf, work } = types()
    const { w, until, mem } = world(ground, { work })
    await mem.store.set('work:state:corrupt', '{not json')
    const gated = w.enqueue(dependency({ on: 'corrupt', queue: leaf('b'), poll: 10, timeout: 30 }))

    expect(await until(gated)).toBeUndefined()
    await expect(until(gated.result())).rejects.toThrow('timed out')
    expect(ran).toEqual([])
  })

  // W26
  it('takes its time from when it is enqueued, by the clock of the system', async () => {
    const { leaf, work } = types()
    const { w, until, clock } = world(ground, { work })
    const late = dependency({ on: 'x', queue: leaf('b'), timeout: 100 })
    await clock.advance(1_000)
    const gated = w.enqueue(late)
    await until(gated.accepted())
    await clock.advance(90)
    expect((await until(w.list())).find((state) => state.id === gated.id)?.status).toBe('pending')
    await expect(until(gated.result())).rejects.toThrow('timed out')
  })

  // W5
  it('ends immediately when it cannot be met any more', async () => {
    const { ran, leaf, bad, work } = types()
    const { w, until, clock } = world(ground, { work })
    const [a, b] = [bad('a'), leaf('b')]
    const gated = w.enqueue(dependency({ on: [a, b], queue: leaf('c'), timeout: 3_600_000 }))
    await until(gated.accepted())
    const began = clock.now()
    void w.enqueue(a)

    await until(gated)
    expect(clock.now() - began).toBeLessThan(1_000)
    await expect(until(gated.result())).rejects.toThrow(`dependency: cannot be satisfied [${a.id}, ${b.id}]`)
    expect(ran).toEqual([])
    await expect(
      until(w.enqueue(dependency({ on: ['x'], queue: leaf('c'), config: { count: 2 } })).result()),
    ).rejects.toThrow('cannot be satisfied [x]')
  })

  // W5
  it('waits for its time where a dead letter may be tried again', async () => {
    const { ran, leaf, bad, work } = types()
    const { w, until, clock } = world(ground, { work, dlq: { push: () => undefined, pop: () => [] } as never })
    const a = bad('a')
    const gated = w.enqueue(dependency({ on: a, queue: leaf('c'), timeout: 20_000 }))
    void w.enqueue(a)
    const began = clock.now()

    await expect(until(gated.result())).rejects.toThrow('cannot be satisfied')
    expect(clock.now() - began).toBeGreaterThan(19_000)
    expect(ran).toEqual([])
  })

  it('holds no place in a doer while it waits, and costs one item', async () => {
    const { leaf, work } = types()
    const { w, until, clock, events } = world(ground, { work, pollInterval: 1_000 })
    const a = leaf('a')
    const gated = w.enqueue(dependency({ on: a, queue: leaf('b') }))
    await clock.advance(300_000)
    expect(w.active()).toEqual([])
    void w.enqueue(a)
    const began = clock.now()
    await until(gated)

    // It was notified: the next poll would have been half a minute away.
    expect(clock.now() - began).toBeLessThan(500)
    expect(gatesOf(events, 'queued')).toHaveLength(1)
    expect(gatesOf(events, 'started')).toHaveLength(1)
    expect(gatesOf(events, 'succeeded')).toHaveLength(1)
  })

  it('may be a child, and its own start and deadline count', async () => {
    const { ran, leaf, work } = types()
    const outside = leaf('outside')
    const root = defineWork('root', (_: null, ctx) => ctx.queue(dependency({ on: outside, queue: leaf('inside') })))
    const { w, until, clock } = world(ground, { work: [...work, root] })
    const flow = w.enqueue(root(null))
    await until(flow.result())
    void w.enqueue(outside)
    expect(await until(flow)).toBe('inside')

    const began = clock.now()
    await until(w.enqueue(dependency({ on: outside, queue: leaf('later') }), { delay: 5_000 }))
    expect(clock.now() - began).toBeGreaterThanOrEqual(5_000)
    await expect(
      until(w.enqueue(dependency({ on: 'x', queue: leaf('never') }), { timeout: 2_000 }).result()),
    ).rejects.toThrow('deadline')
    expect(ran).toEqual(['outside', 'inside', 'later'])
  })

  // W7
  it('queues under the ids that were built', async () => {
    const { leaf, work } = types()
    const { w, until } = world(ground, { work })
    const after = leaf('after')
    await until(w.enqueue(dependency({ on: [], queue: after })))

    expect((await until(w.list())).find(({ id }) => id === after.id)?.status).toBe('success')
  })

  it('is enqueued twice and counts once', async () => {
    const { ran, leaf, work } = types()
    const { w, until } = world(ground, { work })
    const a = leaf('a')
    const gated = dependency({ on: a, queue: leaf('b') })
    const [one, two] = [w.enqueue(gated), w.enqueue(gated)]
    void w.enqueue(a)

    expect([await until(one), await until(two)]).toEqual(['b', 'b'])
    expect(ran).toEqual(['a', 'b'])
  })
})

describe.runIf(isOnMemory)('what a gate queues', () => {
  it('is encoded by its own codec, though the system that runs the gate does not know its type', async () => {
    const shout = { stringify: (v: unknown) => String(v).toUpperCase(), parse: (text: string) => text.toLowerCase() }
    const seen: unknown[] = []
    const odd = defineWork(
      'odd',
      (i: string, ctx) => {
        seen.push(i)
        return ctx.void()
      },
      { codec: shout },
    )
    const { w, until, another } = world('native', { work: [odd], accept: ({ type }) => type === 'odd' })
    const stranger = another({ work: [] })
    await until(w.enqueue(dependency({ on: [], queue: odd('text') as Work }), { priority: 3 }))

    expect(seen).toEqual(['text'])
    await stranger.stop()
  })

  it('keeps `dep:<key>:fired` on plain ports, so that another engine does not fire it again', async () => {
    const { ran, leaf, work } = types()
    const { w, until, mem } = world('wrapped', { work })
    const a = leaf('a')
    const gated = dependency({ on: a, queue: leaf('b') })
    const { key } = gated.input as { key: string }
    await mem.store.set(`work:dep:${key}:fired`, 'another engine')
    void w.enqueue(a)
    await until(w.enqueue(gated))

    expect(ran).toEqual(['a'])
  })
})

describe.each(PLAIN_GROUNDS)('a gate on %s ports', (ground) => {
  // W7
  it('fires once more work that a crash kept from being queued', async () => {
    const { ran, leaf, work } = types()
    const { w, until, mem } = world(ground, { work })
    const gated = dependency({ on: [], queue: leaf('after') })
    const { key } = gated.input as { key: string }
    // What is left of a process that died right after it had claimed the firing.
    await mem.store.set(`work:dep:${key}:fired`, gated.id)
    await until(w.enqueue(gated))

    expect(ran).toEqual(['after'])
  })
})

it('a gate is known to a system without its own work types', async () => {
  const w = createWork({ autoStart: false })
  expect(() => w.enqueue(dependency({ on: 'x', queue: [] }))).not.toThrow()
  await w.stop()
})
