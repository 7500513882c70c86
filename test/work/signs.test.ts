import { describe, expect, it, vi } from 'vitest'
import { createWork, defineWork, memoryBackend, WORK_METRICS } from '../../src/index.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import type { Ports } from '../../src/ports/ports.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { GROUNDS, gate, isOnMemory, mortal, PLAIN_GROUNDS, world } from './support.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

describe.each(GROUNDS)('what a system shows of itself, on %s ports', (ground) => {
  it('shows the depth of its queues when it is asked to measure', async () => {
    const { w } = world(ground, { work: [noop], autoStart: false })
    await w.enqueueMany([noop(null), noop(null), noop(null)])
    const depth = (await w.measure()).find(({ meta }) => meta.name === WORK_METRICS.queueDepth)

    // Minimal ports have no `size`, and nothing is made up for them.
    if (ground === 'minimal') expect(depth).toBeUndefined()
    else expect([depth?.labels, depth?.value]).toEqual([{ queue: 'default' }, 3])
  })

  it('counts a crash once, however often the item is taken again', async () => {
    let runs = 0
    const job = defineWork(
      'job',
      () => {
        runs += 1
        // The first run never ends and is not kept alive: that is what a dead process looks like.
        if (runs === 1) return new Promise<never>(() => undefined)
        throw new Error('again')
      },
      { retry: { attempts: 4, base: 1, jitter: 0 } },
    )
    const lives = { work: [job], visibility: 40, heartbeat: 15, stopDrain: 0 }
    // On plain ports a process that gets no timers still gets notifications: there it is its heartbeats that fail.
    const unpublished = (ports: Ports) => ({
      ...ports,
      queue: {
        ...ports.queue,
        heartbeat: () => {
          throw new Error('unpublished')
        },
      },
    })
    const isPlain = (PLAIN_GROUNDS as readonly string[]).includes(ground)
    const here = isPlain ? world(ground, lives, unpublished) : world(ground, { ...lives, autoStart: false })
    const life = mortal(here.clock)
    if (!isPlain) here.another({ ...lives, clock: life.clock })
    await here.w.enqueue(job({})).accepted()
    await here.clock.advance(20)
    life.die()
    const other = here.another(lives)
    await here.clock.advance(20_000)

    expect(runs).toBe(5)
    const crashes = [here.w, other].map((w) => w.metrics.get(WORK_METRICS.crashed, { type: 'job' })?.value ?? 0)
    expect(crashes.reduce((sum, n) => sum + n, 0)).toBe(1)
  })
})

describe.runIf(isOnMemory)('what a system says', () => {
  it('counts what retention removes', async () => {
    const { w, clock, until } = world('native', { work: [noop], pollInterval: 60_000 })
    await until(w.enqueue(noop(null)))
    await clock.advance(25 * 3_600_000)

    expect(w.metrics.get(WORK_METRICS.removed)?.value).toBe(1)
  })

  it('writes its settings while it is idle, every type with its whole policy', async () => {
    const slow = defineWork('slow', (_: null, ctx) => ctx.void(), {
      runTimeout: 5_000,
      retry: { attempts: Number.POSITIVE_INFINITY, base: 10 },
    })
    const { clock, mem } = world('native', {
      work: [noop, slow],
      visibility: 12_000,
      keepCompleted: 1_000,
      keepDead: 2_000,
      retry: { attempts: 7, jitter: 0 },
    })
    await clock.advance(1_000)
    const owned = ownedBy(mem!, [])
    if (!('open' in owned)) throw new Error('the memory backend has a native ledger')
    const [worker] = await owned.open({ prefix: 'work:' }).inspect!.workers()

    const retry = { attempts: 7, base: 1_000, factor: 2, max: 30_000, jitter: 0 }
    expect(worker?.settings).toMatchObject({
      leaseMs: 12_000,
      keepMs: { completed: 1_000, dead: 2_000 },
      types: {
        noop: { retry },
        slow: { retry: { ...retry, attempts: Number.MAX_SAFE_INTEGER, base: 10 }, runTimeoutMs: 5_000 },
      },
    })
    expect(Object.keys(worker?.settings?.types ?? {}).toSorted()).toEqual([...worker!.types].toSorted())
    // It travels as JSON, and nothing of it is lost on the way.
    expect(JSON.parse(JSON.stringify(worker?.settings))).toEqual(worker?.settings)
  })

  it('reports an event loop that stood still, with the types that ran', async () => {
    let lateMs = 0
    const clock = new FakeClock()
    // A blocked loop is a monotonic clock that has gone on when the timer fires.
    const late = {
      ...clock,
      now: clock.now,
      after: clock.after,
      sleep: clock.sleep,
      monotonic: () => clock.monotonic() + lateMs,
    }
    const errors: unknown[] = []
    const hold = gate()
    const blocks = defineWork('blocks', async (_: null, ctx) => {
      lateMs = 10_000
      await hold.promise
      return ctx.void()
    })
    const w = createWork({
      backend: memoryBackend({ clock }),
      clock: late,
      work: [blocks],
      visibility: 3_000,
      onError: (error) => errors.push(error),
    })
    await w.enqueue(blocks(null)).accepted()
    await clock.advance(5_000)
    hold.open()
    const stopped = w.stop()
    await clock.advance(6_000)
    await stopped

    expect(errors).toContainEqual(
      expect.objectContaining({ code: 'EVENT_LOOP_DELAY', facts: { delayMs: 10_000, types: 'blocks' } }),
    )
  })

  it('warns once when one wrapped port made it plain, and names the port', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    try {
      const open = (wrap: 'queue' | 'none') => {
        const mem = memoryBackend()
        const w = createWork({ ...mem, ...(wrap === 'queue' ? { queue: { ...mem.queue } } : {}), autoStart: false })
        return w.capabilities
      }
      expect(open('none')).toEqual({ atomic: true, inspect: true })
      expect(warned).not.toHaveBeenCalled()
      expect(open('queue')).toMatchObject({ atomic: false, foreign: 'queue' })
      open('queue')
      expect(warned).toHaveBeenCalledTimes(1)
      expect(warned.mock.calls[0]).toEqual([
        expect.stringContaining('its queue is not the backend'),
        expect.objectContaining({ code: 'MILLRACE_PLAIN_PORTS' }),
      ])
    } finally {
      warned.mockRestore()
    }
  })
})
