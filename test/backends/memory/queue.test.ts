import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryQueue } from '../../../src/backends/memory/queue/memory-queue.js'
import type { PulledWork } from '../../../src/ports/ports.js'

function queueAt(start = 1000) {
  const clock = { now: start }
  return { clock, queue: memoryQueue({ now: () => clock.now }) }
}
const bodies = (pulled: readonly PulledWork[]) => pulled.map(({ body }) => body)
const stale: PulledWork = { body: 'x', handle: 'nope', attempt: 1 }

describe('a queue', () => {
  // S01
  it('delivers a body once, and forgets it when it is acked', () => {
    const { queue } = queueAt()
    queue.push('a')
    const [pulled, ...more] = queue.pop(10, 1000)

    expect(pulled).toMatchObject({ body: 'a', attempt: 1 })
    expect(more).toEqual([])
    expect(queue.size()).toBe(1)
    queue.ack(pulled!)
    expect(queue.size()).toBe(0)
  })

  // S02
  it('keeps a body hidden while its lease is extended: the end moves to now + visibility', () => {
    const { clock, queue } = queueAt()
    queue.push('a')
    const [pulled] = queue.pop(10, 100)
    clock.now = 1080
    expect(queue.heartbeat(pulled!, 100)).toBe(true)
    clock.now = 1160
    expect(queue.pop(10, 100)).toEqual([])
    clock.now = 1180
    expect(queue.pop(10, 100)).toMatchObject([{ body: 'a', attempt: 2 }])
    expect(queue.heartbeat(pulled!, 100)).toBe(false)
  })

  it('a heartbeat can shorten a lease too', () => {
    const { clock, queue } = queueAt()
    queue.push('a')
    const [pulled] = queue.pop(1, 10_000)
    queue.heartbeat(pulled!, 50)
    clock.now = 1050
    expect(bodies(queue.pop(1, 10))).toEqual(['a'])
  })

  // S03
  it('hides a delayed body, and takes a key once while it is in the queue', () => {
    const { clock, queue } = queueAt()
    queue.push('a', { delay: 50 })
    expect(queue.pop(10, 1000)).toEqual([])
    clock.now = 1051
    const [pulled] = queue.pop(10, 1000)
    expect(pulled?.body).toBe('a')
    queue.push('b', { dedupeKey: 'x' })
    queue.push('b', { dedupeKey: 'x' })
    expect(queue.size()).toBe(2)
    const [b] = queue.pop(10, 1000)
    queue.push('b', { dedupeKey: 'x' })
    expect(queue.size()).toBe(2)
    queue.ack(b!)
    queue.push('b', { dedupeKey: 'x' })
    expect(queue.size()).toBe(2)
  })

  // S04
  it('makes a failed body visible again after its delay, and counts deliveries', () => {
    const { clock, queue } = queueAt()
    queue.push('a')
    queue.fail(queue.pop(1, 1000)[0]!, 30)
    expect(queue.pop(1, 1000)).toEqual([])
    clock.now += 31
    const [second] = queue.pop(1, 1000)
    expect(second?.attempt).toBe(2)
    queue.fail(second!)
    expect(queue.pop(1, 1000)).toMatchObject([{ attempt: 3 }])
  })

  // S05
  it('ignores a token that is not that of the current lease', () => {
    const { clock, queue } = queueAt()
    queue.push('a')
    const [first] = queue.pop(1, 100)
    queue.heartbeat(stale, 1)
    queue.fail(stale)
    queue.ack(stale)
    queue.ack({ body: 'a', handle: undefined, attempt: 1 })
    expect(queue.size()).toBe(1)
    clock.now = 1100
    const [second] = queue.pop(1, 100)
    queue.ack(first!)
    queue.fail(first!)
    expect(queue.size()).toBe(1)
    queue.ack(second!)
    expect(queue.size()).toBe(0)
    queue.ack(second!)
    queue.fail(second!)
    expect(queue.pop(1, 100)).toEqual([])
  })

  it('gives no more than it was asked for, and no body twice', () => {
    const { queue } = queueAt()
    for (let n = 0; n < 5; n += 1) queue.push(String(n))
    expect(bodies(queue.pop(3, 100))).toEqual(['0', '1', '2'])
    expect(bodies(queue.pop(3, 100))).toEqual(['3', '4'])
    expect(queue.pop(0, 100)).toEqual([])
    expect(queue.pop(Number.NaN, 100)).toEqual([])
  })

  it('refuses a body that is not text', () => {
    const { queue } = queueAt()
    expect(() => queue.push({} as never)).toThrow(/body must be a string, got an object/)
    expect(() => queue.pushMany([{ body: 'a' }, { body: 5 as never }])).toThrow(/got 5/)
    expect(queue.size()).toBe(0)
  })

  it('refuses a dead letter that is not text', () => {
    const { queue } = queueAt()
    expect(() => queue.deadLetter(5 as never, 'why')).toThrow(/deadLetter\(body\): body must be a string, got 5/)
    expect(() => queue.deadLetter('a', undefined as never)).toThrow(/deadLetter\(error\): error must be a string/)
    expect(() => queue.deadQueue().push(5 as never)).toThrow(/push\(body\): body must be a string, got 5/)
    expect(queue.dead).toEqual([])
  })

  it.each(['5', Number.NaN, Number.POSITIVE_INFINITY, null])(
    'refuses a time of %j by name, and changes nothing',
    (ms) => {
      const { queue } = queueAt()
      const bad = ms as never
      const refused = (what: string) => expect.objectContaining({ code: 'BAD_OPTION', option: what })
      expect(() => queue.push('a', { delay: bad })).toThrow(refused('push.delay'))
      expect(() => queue.pushMany([{ body: 'a' }, { body: 'b', options: { delay: bad } }])).toThrow(
        refused('push.delay'),
      )
      expect(queue.size()).toBe(0)
      queue.push('a')
      expect(() => queue.pop(1, bad)).toThrow(refused('pop.visibility'))
      const [pulled] = queue.pop(1, 100)
      expect(pulled?.attempt).toBe(1)
      expect(() => queue.heartbeat(pulled!, bad)).toThrow(refused('heartbeat.visibility'))
      expect(() => queue.fail(pulled!, bad)).toThrow(refused('fail.delay'))
      expect(queue.heartbeat(pulled!, 100)).toBe(true)
    },
  )
})

describe('the order of claim', () => {
  it('is priority, then due time, then arrival', () => {
    const { clock, queue } = queueAt()
    queue.push('late', { delay: 20 })
    queue.push('soon', { delay: 10 })
    queue.push('first')
    queue.push('urgent', { priority: 5, delay: 30 })
    queue.push('idle', { priority: -1 })
    clock.now += 30
    queue.push('last')

    expect(bodies(queue.pop(10, 100))).toEqual(['urgent', 'first', 'soon', 'late', 'last', 'idle'])
  })

  it('keeps the place of a body that is put back without a delay or whose lease lapsed', () => {
    const { clock, queue } = queueAt()
    for (const body of ['a', 'b', 'c']) queue.push(body)
    const [a] = queue.pop(1, 100)
    queue.fail(a!)
    expect(bodies(queue.pop(1, 100))).toEqual(['a'])
    clock.now += 100
    expect(bodies(queue.pop(3, 100))).toEqual(['a', 'b', 'c'])
  })

  it('gives a body that is put back with a delay a new place', () => {
    const { clock, queue } = queueAt()
    queue.push('a')
    queue.push('b')
    queue.fail(queue.pop(1, 100)[0]!, 10)
    clock.now += 10
    expect(bodies(queue.pop(2, 100))).toEqual(['b', 'a'])
  })

  it('takes a priority that is no number, or a negative delay, as none', () => {
    const { queue } = queueAt()
    queue.push('a', { priority: Number.NaN, delay: -5 })
    queue.push('b')
    expect(bodies(queue.pop(9, 100))).toEqual(['a', 'b'])
  })
})

describe('the machine clock being set', () => {
  it('back neither stretches leases nor stalls what is delayed', () => {
    const { clock, queue } = queueAt(1_000_000)
    queue.push('leased')
    queue.pop(1, 100)
    queue.push('delayed', { delay: 100 })
    clock.now = 0
    expect(queue.pop(9, 100)).toEqual([])
    clock.now = 100
    expect(bodies(queue.pop(9, 100))).toEqual(['leased', 'delayed'])
  })

  it('forward ends no lease, when a whole clock is given', () => {
    const time = { wall: 0, steady: 0 }
    const clock = { now: () => time.wall, monotonic: () => time.steady, after: () => () => {}, sleep: async () => {} }
    const queue = memoryQueue({ clock })
    queue.push('a')
    const [pulled] = queue.pop(1, 30_000)
    time.wall = 3_600_000
    expect(queue.pop(1, 30_000)).toEqual([])
    expect(queue.heartbeat(pulled!, 30_000)).toBe(true)
    time.steady = 30_000
    expect(bodies(queue.pop(1, 30_000))).toEqual(['a'])
  })
})

describe('dead letters', () => {
  // W14
  it('are a live array, bounded; the oldest leave first, and are reported', () => {
    const evicted: string[] = []
    const queue = memoryQueue({ maxDead: 2, onEvict: ({ body }) => evicted.push(body) })
    const { dead } = queue
    for (const body of ['a', 'b', 'c']) queue.deadLetter(body, 'why')

    expect(dead).toEqual([
      { body: 'b', error: 'why' },
      { body: 'c', error: 'why' },
    ])
    expect(evicted).toEqual(['a'])
  })

  it('go on when the observer throws', () => {
    const queue = memoryQueue({
      maxDead: 0,
      onEvict: () => {
        throw new Error('mine')
      },
    })
    expect(() => queue.deadLetter('a', 'why')).not.toThrow()
    expect(queue.dead).toEqual([])
  })

  it('can be read as a queue: ack takes one out, fail hides it, a lapsed lease gives it back', async () => {
    const { clock, queue } = queueAt()
    for (const body of ['a', 'b', 'c']) queue.deadLetter(body, 'why')
    const dlq = queue.deadQueue()
    const [a, b] = dlq.pop(2, 100) as PulledWork[]
    expect([a?.body, b?.body]).toEqual(['a', 'b'])
    expect(bodies(dlq.pop(9, 50) as PulledWork[])).toEqual(['c'])
    await dlq.ack(a!)
    await dlq.ack(a!)
    expect(bodies(queue.dead.map((d) => ({ ...d, handle: 0, attempt: 0 })))).toEqual(['b', 'c'])
    await dlq.fail(b!, 3_600_000)
    clock.now += 50
    const [c] = dlq.pop(9, 100) as PulledWork[]
    expect(c).toMatchObject({ body: 'c', attempt: 2 })
    expect(dlq.heartbeat(c!, 100)).toBe(true)
    expect(dlq.heartbeat(stale, 100)).toBe(false)
    clock.now += 3_600_000
    expect(bodies(dlq.pop(9, 100) as PulledWork[])).toEqual(['b', 'c'])
    expect(dlq.size?.()).toBe(2)
  })
})

describe('a queue that is spread', () => {
  it('is a plain port: the known members work without this, the rest is lost', () => {
    const spread = { ...memoryQueue() }
    const { push, pop, ack, fail, heartbeat, deadLetter, size } = spread
    push('a')
    const [pulled] = pop(1, 100)
    heartbeat(pulled!, 100)
    fail(pulled!)
    ack(pop(1, 100)[0]!)
    deadLetter('a', 'b')

    expect(size()).toBe(0)
    expect(Object.keys(spread).sort()).toEqual(
      ['ack', 'dead', 'deadLetter', 'fail', 'heartbeat', 'pop', 'push', 'size'].sort(),
    )
  })

  it('has its bulk members on the queue itself', () => {
    const { queue } = queueAt()
    queue.pushMany([{ body: 'a' }, { body: 'b', options: { priority: 1 } }])
    const pulled = queue.pop(9, 100)
    expect(bodies(pulled)).toEqual(['b', 'a'])
    expect(queue.heartbeatMany([...pulled, stale], 100)).toEqual([true, true, false])
    queue.ackMany(pulled)
    expect(queue.size()).toBe(0)
  })
})

describe('any sequence of calls', () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constant('push' as const),
      delay: fc.constantFrom(0, 0, 0, 5, 20),
      priority: fc.constantFrom(0, 0, 0, 1, 2, -1),
      key: fc.constantFrom(undefined, undefined, 'k', 'l'),
    }),
    fc.record({ do: fc.constant('pop' as const), max: fc.integer({ min: 0, max: 4 }), v: fc.constantFrom(5, 10, 30) }),
    fc.record({
      do: fc.constantFrom('ack' as const, 'fail' as const, 'beat' as const),
      which: fc.nat(20),
      ms: fc.constantFrom(undefined, 3, 10),
    }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 12 }) }),
  )

  it('behaves as a sorted list would', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let now = 0
        const queue = memoryQueue({ now: () => now })
        type Entry = { n: number; due: number; p: number; key?: string; leases: number; handle?: unknown; end: number }
        let model: Entry[] = []
        const pulled: PulledWork[] = []
        const holder = (handle: unknown) => model.find((e) => e.handle !== undefined && e.handle === handle)
        for (const [n, one] of steps.entries()) {
          switch (one.do) {
            case 'push': {
              queue.push(String(n), {
                delay: one.delay,
                priority: one.priority,
                ...(one.key === undefined ? {} : { dedupeKey: one.key }),
              })
              if (one.key !== undefined && model.some((e) => e.key === one.key)) break
              model.push({
                n,
                due: now + one.delay,
                p: one.priority,
                leases: 0,
                end: 0,
                ...(one.key === undefined ? {} : { key: one.key }),
              })
              break
            }
            case 'pop': {
              for (const e of model) if (e.handle !== undefined && e.end <= now) delete e.handle
              const expected = model
                .filter((e) => e.handle === undefined && e.due <= now)
                .sort((a, b) => b.p - a.p || a.due - b.due || a.n - b.n)
                .slice(0, one.max)
              const got = queue.pop(one.max, one.v)
              expect(got.map((g) => [g.body, g.attempt])).toEqual(expected.map((e) => [String(e.n), e.leases + 1]))
              for (const [i, e] of expected.entries()) {
                e.leases += 1
                e.handle = got[i]!.handle
                e.end = now + one.v
              }
              pulled.push(...got)
              break
            }
            case 'ack':
            case 'fail':
            case 'beat': {
              const p = pulled[one.which % Math.max(1, pulled.length)]
              if (p === undefined) break
              const e = holder(p.handle)
              if (one.do === 'ack') {
                queue.ack(p)
                model = model.filter((x) => x !== e)
              } else if (one.do === 'fail') {
                queue.fail(p, one.ms)
                if (e !== undefined) {
                  delete e.handle
                  if (one.ms !== undefined) e.due = now + one.ms
                }
              } else {
                expect(queue.heartbeat(p, one.ms ?? 7)).toBe(e !== undefined)
                if (e !== undefined) e.end = now + (one.ms ?? 7)
              }
              break
            }
            case 'wait':
              now += one.ms
              break
          }
          expect(queue.size()).toBe(model.length)
        }
      }),
      { numRuns: 1000 },
    )
  })
})
