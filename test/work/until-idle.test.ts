import { describe, expect, it, vi } from 'vitest'
import { createWork, defineWork, memoryBackend } from '../../src/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { GROUNDS, gate, isOnMemory, plain, world } from './support.js'

const noop = defineWork('noop', (_: number) => undefined)
const NOTHING = { ended: 'idle', succeeded: 0, retried: 0, dead: 0, cancelled: 0, handedBack: 0 }

describe.each(GROUNDS)('a run until idle on %s ports', (ground) => {
  it('works off what is due, and resolves with what became of it', async () => {
    const bad = defineWork('bad', () => {
      throw new Error('x')
    })
    const dead = defineWork('dead', () => Promise.reject(new Error('x')), { retry: { attempts: 1 } })
    const { w, until } = world(ground, { work: [noop, bad, dead], autoStart: false, retry: { base: 600_000 } })
    for (let i = 0; i < 40; i += 1) await until(w.add(noop(i)))
    await until(w.add(bad(undefined)))
    await until(w.add(dead(undefined)))

    const ran = await until(w.runUntilIdle())

    expect(ran).toEqual({ ...NOTHING, succeeded: 40, retried: 1, dead: 1 })
    expect(w.active()).toEqual([])
  })

  it('ends at once where nothing is due: an item that is due later does not hold it', async () => {
    const { w, clock, until } = world(ground, { work: [noop], autoStart: false })
    await until(w.add(noop(1), { delay: 30_000 }))
    const begunAt = clock.now()

    expect(await until(w.runUntilIdle())).toEqual(NOTHING)
    expect(clock.now() - begunAt).toBeLessThan(5_000)
  })

  it('runs what its handlers queue, and what waits for that', async () => {
    const seen: string[] = []
    const leaf = defineWork('leaf', (name: string) => {
      seen.push(name)
      return name
    })
    const root = defineWork('root', (_: null, ctx) => ctx.queue([leaf('a'), leaf('b')]).next(() => leaf('both')))
    const { w, until } = world(ground, { work: [leaf, root], autoStart: false })
    await until(w.add(root(null)))

    const ran = await until(w.runUntilIdle())

    expect(ran.ended).toBe('idle')
    expect(seen).toEqual([expect.any(String), expect.any(String), 'both'])
  })

  it('leaves types of other workers where they are', async () => {
    const other = defineWork('other', () => undefined)
    const { w, clock, another, until } = world(ground, { work: [noop], autoStart: false })
    const producer = another({ work: [other], autoStart: false })
    await until(producer.add(other(undefined)))
    await until(w.add(noop(1)))

    expect(await until(w.runUntilIdle())).toMatchObject({ ended: 'idle', succeeded: 1 })
    // Plain queues hand out anything, so there it was taken and given back, for later.
    await clock.advance(10_000)
    expect(await until(producer.runUntilIdle())).toMatchObject({ ended: 'idle', succeeded: 1 })
  })

  it('stops when its time is over: it claims no more, lets what runs end, and gives back what has not begun', async () => {
    const slow = defineWork('slow', (_: number, ctx) =>
      new Promise<void>((done) => clock.after(3_000, done)).then(() => ctx.void()),
    )
    const { w, clock, until } = world(ground, { work: [slow], autoStart: false, concurrency: 1 })
    for (let i = 0; i < 5; i += 1) await until(w.add(slow(i)))
    const begunAt = clock.now()

    const ran = await until(w.runUntilIdle({ within: 10_000 }))

    expect(ran).toMatchObject({ ended: 'time', dead: 0, retried: 0 })
    expect(ran.succeeded).toBeGreaterThanOrEqual(1)
    expect(ran.succeeded).toBeLessThan(5)
    expect(clock.now() - begunAt).toBeLessThanOrEqual(10_000)
    // Nothing was lost, and no attempt was spent: the next call runs the rest.
    const rest = await until(w.runUntilIdle({ within: 1_000_000 }), 2_000_000)
    expect(rest).toMatchObject({ ended: 'idle', succeeded: 5 - ran.succeeded })
  })

  it('signals a handler that is still running at the end, whose item then runs again elsewhere', async () => {
    const attempts: number[] = []
    const long = defineWork('long', (_: null, ctx) => {
      attempts.push(ctx.attempt)
      return new Promise<never>((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
      })
    })
    const { w, clock, until } = world(ground, { work: [long], autoStart: false })
    await until(w.add(long(null)))
    const begunAt = clock.now()

    expect(await until(w.runUntilIdle({ within: 4_000 }))).toEqual({ ...NOTHING, ended: 'time', handedBack: 1 })
    expect(clock.now() - begunAt).toBeLessThanOrEqual(4_000)
    await until(w.runUntilIdle({ within: 4_000 }))
    expect(attempts).toEqual([1, 1])
  })

  it('resolves when the program stops it', async () => {
    const held = gate()
    const waits = defineWork('waits', () => held.promise)
    const { w, clock, until } = world(ground, { work: [waits], autoStart: false })
    await until(w.add(waits(undefined)))
    const run = w.runUntilIdle()
    await clock.advance(500)
    const stopped = w.stop()
    held.open()
    await until(stopped)

    expect(await until(run)).toEqual({ ...NOTHING, ended: 'stopped', succeeded: 1 })
  })
})

describe('a run until idle', () => {
  it.runIf(isOnMemory)('waits for room that comes back: a rate limit leaves nothing behind', async () => {
    const { rateLimitedDoer } = await import('../../src/index.js')
    const clock = new FakeClock()
    const doer = rateLimitedDoer({ limit: 2, window: 1_000, clock })
    const w = createWork({
      backend: memoryBackend({ clock }),
      clock,
      work: [noop],
      doer,
      autoStart: false,
      pollInterval: 50,
    })
    for (let i = 0; i < 7; i += 1) await w.add(noop(i))
    const run = w.runUntilIdle()
    await clock.advance(10_000)

    expect(await run).toMatchObject({ ended: 'idle', succeeded: 7 })
  })

  it('is refused on a system that works, and while another one runs', async () => {
    const clock = new FakeClock()
    const working = createWork({ backend: memoryBackend({ clock }), clock, work: [noop] })
    await expect(working.runUntilIdle()).rejects.toMatchObject({ code: 'ALREADY_WORKING' })
    await working.stop()
    const first = working.runUntilIdle()
    await expect(working.runUntilIdle()).rejects.toMatchObject({ code: 'ALREADY_WORKING' })
    await clock.advance(100)
    expect(await first).toMatchObject({ ended: 'idle' })
  })

  it('refuses a time that is none, before it does anything', async () => {
    const w = createWork({ clock: new FakeClock(), work: [noop], autoStart: false })
    for (const within of [0, -1, Number.NaN, '5' as unknown as number])
      await expect(w.runUntilIdle({ within })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(w.runUntilIdle({ withn: 5 } as never)).rejects.toThrow('Did you mean "within"?')
    expect(w.active()).toEqual([])
  })

  it('ends in time though the backend does not answer, and says so to onError', async () => {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const onError = vi.fn()
    const queue = { ...backend.queue, pop: () => new Promise<never>(() => undefined) }
    const w = createWork({ ...plain(backend), queue, clock, work: [noop], autoStart: false, onError })
    const run = w.runUntilIdle({ within: 6_000 })
    await clock.advance(6_000)

    expect(await run).toMatchObject({ ended: 'time', succeeded: 0 })
  })
})
