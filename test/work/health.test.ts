import { describe, expect, it, vi } from 'vitest'
import { createWork, defineWork, memoryBackend } from '../../src/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { GROUNDS, gate, isOnMemory, world } from './support.js'

const noop = defineWork('noop', () => undefined)
const codes = ({ reasons }: { readonly reasons: readonly { readonly code: string }[] }) =>
  reasons.map(({ code }) => code)

describe.each(GROUNDS)('health on %s ports', (ground) => {
  it('of a worker is live and ready while it works, and says how lately it claimed', async () => {
    const { w, clock, until } = world(ground, { work: [noop] })
    await until(w.enqueue(noop(undefined)).result())
    await clock.advance(2_000)

    const health = await until(w.health())

    expect(health).toMatchObject({ live: true, ready: true, activity: 'working', reasons: [], active: 0 })
    expect(health.backendMs).toBeGreaterThanOrEqual(0)
    expect(health.claimedMsAgo).toBeLessThan(1_000)
    expect(JSON.parse(JSON.stringify(health))).toEqual(health)
  })

  it('of a process that only adds is live and ready while the backend answers', async () => {
    const { w, until } = world(ground, { autoStart: false })

    expect(await until(w.health())).toMatchObject({ live: true, ready: true, activity: 'adding' })
  })

  it('of a worker that stops is live and not ready, before and after it has stopped', async () => {
    const held = gate()
    const waits = defineWork('waits', () => held.promise)
    const { w, clock, until } = world(ground, { work: [waits] })
    await until(w.add(waits(undefined)))
    await clock.advance(500)
    const stopped = w.stop()

    const stopping = await until(w.health())
    expect(stopping).toMatchObject({ live: true, ready: false, activity: 'stopping', active: 1 })
    expect(codes(stopping)).toEqual(['stopping'])
    held.open()
    await until(stopped)
    const after = await until(w.health())
    expect(after).toMatchObject({ live: true, ready: false, activity: 'stopped', active: 0 })
    expect(codes(after)).toEqual(['stopped'])
    w.start()
    await clock.advance(500)
    expect(await until(w.health())).toMatchObject({ ready: true, activity: 'working' })
  })
})

const long = defineWork('long', () => new Promise<never>(() => undefined))

/** A worker on plain ports whose calls can be made to fail or to hang. */
function troubled() {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock })
  const trouble: { store?: () => Promise<never>; pop?: () => Promise<never>; heartbeat?: () => Promise<never> } = {}
  const asked = vi.fn()
  const onError = vi.fn()
  const w = createWork({
    queue: {
      ...backend.queue,
      pop: (...args) => trouble.pop?.() ?? backend.queue.pop(...args),
      heartbeat: (...args) => trouble.heartbeat?.() ?? backend.queue.heartbeat(...args),
    },
    pubsub: { ...backend.pubsub },
    store: {
      ...backend.store,
      get: (key) => {
        if (key === 'work:health') asked()
        return trouble.store?.() ?? backend.store.get(key)
      },
    },
    clock,
    work: [noop, long],
    pollInterval: 100,
    visibility: 3_000,
    onError,
    stopDrain: 0,
  })
  return { w, clock, trouble, asked }
}

const hangs = () => new Promise<never>(() => undefined)
const fails = () => Promise.reject(new Error('connect redis://app:secret@db refused'))

describe.runIf(isOnMemory)('health', () => {
  it('is not ready, but live, when the backend does not answer in time; the call is bounded', async () => {
    const { w, clock, trouble } = troubled()
    await clock.advance(500)
    trouble.store = hangs
    const asking = w.health({ within: 300 })
    await clock.advance(300)

    const health = await asking
    expect(health).toMatchObject({ live: true, ready: false })
    expect(health.reasons).toEqual([{ code: 'backend', text: 'the backend did not answer within 300 ms' }])
    expect(health).not.toHaveProperty('backendMs')
  })

  it('says why the backend cannot be reached, without the password in its address', async () => {
    const { w, clock, trouble } = troubled()
    await clock.advance(500)
    trouble.store = fails

    const { live, ready, reasons } = await w.health()
    expect({ live, ready, reasons }).toEqual({
      live: true,
      ready: false,
      reasons: [{ code: 'backend', text: 'connect redis://app:***@db refused' }],
    })
  })

  it('asks a backend that hangs once, however many probes come', async () => {
    const { w, clock, trouble, asked } = troubled()
    trouble.store = hangs
    const probes = Array.from({ length: 50 }, () => w.health({ within: 100 }))
    await clock.advance(100)

    expect((await Promise.all(probes)).every(({ ready }) => !ready)).toBe(true)
    expect(asked).toHaveBeenCalledTimes(1)
  })

  it('is not ready when claims hang, and is again once one is answered', async () => {
    const { w, clock, trouble } = troubled()
    let answer: (error: Error) => void = () => undefined
    trouble.pop = () =>
      new Promise<never>((_, reject) => {
        answer = reject
      })
    await clock.advance(40_000)
    expect(codes(await w.health())).toEqual(['claims'])
    expect((await w.health()).live).toBe(true)

    delete trouble.pop
    answer(new Error('reset'))
    await clock.advance(40_000)
    expect(await w.health()).toMatchObject({ ready: true, reasons: [] })
  })

  it('is not ready while leases cannot be kept', async () => {
    const { w, clock, trouble } = troubled()
    void w.add(long(undefined))
    await clock.advance(500)
    expect(w.active()).toHaveLength(1)
    trouble.heartbeat = () => Promise.reject(new Error('no'))
    await clock.advance(4_000)

    const health = await w.health()
    expect(codes(health)).toEqual(['leases'])
    expect(health.live).toBe(true)
    // It was answered again, and the lost one is forgotten in time.
    delete trouble.heartbeat
    await clock.advance(10_000)
    expect(await w.health()).toMatchObject({ ready: true })
  })

  it('is not live when the loop stands still: a backpressure that never answers', async () => {
    const clock = new FakeClock()
    const w = createWork({ clock, work: [noop], backpressure: hangs, stopDrain: 0 })
    await clock.advance(59_000)
    expect(await w.health()).toMatchObject({ live: true, ready: true })
    await clock.advance(10_000)

    const health = await w.health()
    expect(health).toMatchObject({ live: false, ready: false })
    expect(health.reasons[0]?.text).toMatch(/^the loop that claims work has not turned for 69 s/)
    const stopped = w.stop()
    await clock.advance(1_000)
    await stopped
  })

  it('stays live through a pause that backpressure asked for, and through handlers that fill every place', async () => {
    const clock = new FakeClock()
    const paused = createWork({ clock, work: [noop], backpressure: () => 600_000 })
    const full = createWork({ clock, work: [long], concurrency: 1, stopDrain: 0 })
    await full.add(long(undefined))
    await full.add(long(undefined))
    await clock.advance(300_000)

    expect(await paused.health()).toMatchObject({ live: true, ready: true })
    expect(await full.health()).toMatchObject({ live: true, ready: true, active: expect.any(Number) })
    await paused.stop()
    const stopped = full.stop()
    await clock.advance(1_000)
    await stopped
  })

  it('is not ready after a handler has blocked the event loop', async () => {
    const clock = new FakeClock()
    const blocks = defineWork('blocks', () => new Promise<never>(() => undefined))
    const w = createWork({ clock, work: [blocks], visibility: 3_000, onError: () => undefined, stopDrain: 0 })
    await w.add(blocks(undefined))
    await clock.advance(500)
    const late = vi.spyOn(clock, 'monotonic').mockImplementation(() => 10_000)
    await clock.advance(1_000)
    const health = await w.health()
    late.mockRestore()

    expect(codes(health)).toContain('event-loop')
    const stopped = w.stop()
    await clock.advance(1_000)
    await stopped
  })

  it('refuses options that are none', async () => {
    const w = createWork({ clock: new FakeClock(), autoStart: false })
    await expect(w.health({ within: 0 })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(w.health({ timeout: 5 } as never)).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })
})
