import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { defineWork, memoryQueue } from '../../src/index.js'
import { NATIVE, type OwnedPorts } from '../../src/ports/find-ledger.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Ports } from '../../src/ports/ports.js'
import { PLAIN_GROUNDS, world } from './support.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

/** The same backend, with a ledger that commits in another way. */
function committing(ports: Ports, commit: (ledger: Ledger) => Ledger['commit']): Ports {
  const own = (ports.store as unknown as Record<symbol, OwnedPorts>)[NATIVE]!
  const store = { ...ports.store }
  const open: OwnedPorts['open'] = (options) => {
    const ledger = own.open(options)
    return new Proxy(ledger, {
      get: (of, name) => {
        if (name === 'commit') return commit(ledger)
        const member: unknown = Reflect.get(of, name)
        return typeof member === 'function' ? member.bind(of) : member
      },
    })
  }
  Object.defineProperty(store, NATIVE, { value: { ...own, store, open } })
  return { ...ports, store }
}

const NEVER = new Promise<never>(() => undefined)

describe.each(PLAIN_GROUNDS)('a push that is never answered, on %s ports', (ground) => {
  it('delays no other queue, and finally rejects as of unknown outcome', async () => {
    const hung = defineWork('hung', (_: null, ctx) => ctx.void(), {
      queue: { ...memoryQueue(), push: () => NEVER },
    })
    const { w, clock, until } = world(ground, { work: [noop, hung] })
    const accepted = w.enqueue(hung(null)).accepted()
    accepted.catch(() => undefined)
    await clock.advance(10)
    const startAt = clock.now()
    await until(w.enqueue(noop(null)).result())
    expect(clock.now() - startAt).toBeLessThan(100)

    await clock.advance(5_000)
    await expect(accepted).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })
})

describe('a commit that is never answered, on a ledger', () => {
  it.each([
    { wasApplied: false, name: 'lost on its way' },
    { wasApplied: true, name: 'applied, its answer lost' },
  ])('is repeated after its time, and its handler is not run again ($name)', async ({ wasApplied }) => {
    let runs = 0
    let hangs = 1
    const once = defineWork('once', (_: null, ctx) => {
      runs += 1
      return ctx.result('done')
    })
    const { w, clock, until } = world('native', { work: [once] }, (ports) =>
      committing(ports, (ledger) => (batch) => {
        if (hangs === 0 || batch[0]?.guard?.by !== 'lease') return ledger.commit(batch)
        hangs -= 1
        if (wasApplied) void ledger.commit(batch)
        return NEVER
      }),
    )
    expect(w.capabilities.atomic).toBe(true)
    const first = w.enqueue(once(null)).result()
    await clock.advance(1_000)
    expect(hangs).toBe(0)
    expect(await until(first, 10_000)).toBe('done')
    expect(await until(w.enqueue(once(null)).result(), 10_000)).toBe('done')
    expect(runs).toBe(2)
  })

  it('is repeated immediately where it failed instead, and its end and its group are reported once', async () => {
    let failures = 1
    const once = defineWork('once', (_: null, ctx) => ctx.result('done'))
    const { w, clock, until, events } = world('native', { work: [once] }, (ports) =>
      committing(ports, (ledger) => async (batch) => {
        const results = await ledger.commit(batch)
        if (failures === 0 || batch[0]?.guard?.by !== 'lease') return results
        failures -= 1
        throw new Error('the connection is gone')
      }),
    )
    expect(await until(w.enqueue(once(null)).result(), 10_000)).toBe('done')
    await clock.advance(10_000)

    expect(failures).toBe(0)
    expect(events.map(({ kind }) => kind)).toEqual(['queued', 'started', 'succeeded', 'group-done'])
    expect(events.at(-1)).toMatchObject({ result: 'done' })
  })
})

describe('enqueues that are never answered', () => {
  const silent = (ports: Ports) => committing(ports, () => () => NEVER)

  it.each([
    { stopDrain: 0, waitsMs: 5_000 },
    { stopDrain: 20_000, waitsMs: 20_000 },
  ])(
    'are waited for by stop() for $waitsMs ms with a stopDrain of $stopDrain, and reported with their number',
    async ({ stopDrain, waitsMs }) => {
      const options = { work: [noop], autoStart: false, visibility: 30_000, stopDrain }
      const { w, clock, errors } = world('native', options, silent)
      for (let n = 0; n < 3; n += 1) void w.enqueue(noop(null))
      let isStopped = false
      const stopping = w.stop().then(() => {
        isStopped = true
      })

      await clock.advance(waitsMs - 1)
      expect(isStopped).toBe(false)
      await clock.advance(1)
      await stopping

      expect(errors).toHaveLength(1)
      expect(errors[0]?.error).toMatchObject({
        code: 'ENQUEUES_UNANSWERED',
        facts: { count: 3, afterMs: waitsMs, by: 'stop' },
      })
    },
  )

  it('are waited for by a close of the backend, too, and only once', async () => {
    let close!: () => Promise<void>
    const options = { work: [noop], autoStart: false, visibility: 30_000 }
    const { w, clock, errors } = world('native', options, (ports) => {
      close = () => (ports as Ports & { close(): Promise<void> }).close()
      return silent(ports)
    })
    void w.enqueue(noop(null))
    const closing = close()
    await clock.advance(5_000)
    await closing
    await w.stop()

    expect(errors).toHaveLength(1)
    expect(errors[0]?.error).toMatchObject({ code: 'ENQUEUES_UNANSWERED', facts: { count: 1, by: 'close' } })
  })
})

describe('enqueues that are never answered, of systems without onError', () => {
  const silent = (ports: Ports) => committing(ports, () => () => NEVER)
  const options = { work: [noop], autoStart: false, visibility: 30_000, onError: undefined as never }

  function warned() {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    onTestFinished(() => warn.mockRestore())
    return () => warn.mock.calls.map(([text]) => String(text)).filter((text) => text.startsWith('ENQUEUES_UNANSWERED'))
  }

  it('are a process warning for each system, though they read the same', async () => {
    const said = warned()
    for (let n = 0; n < 2; n += 1) {
      const { w, clock } = world('native', options, silent)
      void w.enqueue(noop(null))
      void w.enqueue(noop(null))
      const stopping = w.stop()
      await clock.advance(5_000)
      await stopping
    }

    expect(said()).toHaveLength(2)
  })

  it.each([
    { name: 'a list', counted: 5_001, some: (count: number) => Array.from({ length: count }, () => noop(null)) },
    // As far as it was read.
    {
      name: 'a generator',
      counted: 1_001,
      *some(count: number) {
        for (let n = 0; n < count; n += 1) yield noop(null)
      },
    },
  ])('are counted with those that an enqueueMany has still to make: $name', async ({ some, counted }) => {
    const said = warned()
    const { w, clock } = world('native', options, silent)
    void w.enqueueMany(some(5_000) as never).catch(() => undefined)
    void w.enqueue(noop(null))
    await clock.advance(10)
    const stopping = w.stop()
    await clock.advance(5_000)
    await stopping

    expect(said()).toEqual([expect.stringContaining(`did not answer ${counted} enqueues within`)])
  })
})

describe('enqueueMany', () => {
  it('refuses what is no list of works', async () => {
    const { w } = world('native', { work: [noop], autoStart: false })

    for (const works of [undefined, null, 5, {}])
      await expect(w.enqueueMany(works as never)).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })

  it('takes a list as it is when it is called', async () => {
    const { w, until } = world('native', { work: [noop], autoStart: false })
    const works = [noop(null), noop(null)]
    const enqueued = w.enqueueMany(works)
    works.length = 0

    expect(await until(enqueued)).toHaveLength(2)
  })
})

describe('enqueues that fail together', () => {
  const broken = (ports: Ports) =>
    committing(ports, () => async () => {
      throw new Error('the disk is full')
    })

  it('are reported once', async () => {
    const { w, clock, errors } = world('native', { work: [noop], autoStart: false }, broken)
    for (let n = 0; n < 17; n += 1) void w.enqueue(noop(null))
    await clock.advance(10)

    expect(errors).toHaveLength(1)
  })

  it('are a process warning with their number where the system has no onError, and another one a minute later at most', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    onTestFinished(() => warn.mockRestore())
    const { w, clock } = world('native', { work: [noop], autoStart: false, onError: undefined as never }, broken)
    const enqueue = async (count: number) => {
      for (let n = 0; n < count; n += 1) void w.enqueue(noop(null))
      await clock.advance(10)
    }
    await enqueue(17)
    await enqueue(2)
    expect(warn.mock.calls).toEqual([
      [
        expect.stringMatching(/^17 enqueued items were not accepted.*the disk is full$/),
        { type: 'MillraceWarning', code: 'MILLRACE_ENQUEUE_LOST' },
      ],
    ])

    await enqueue(3)
    await clock.advance(60_000)
    expect(warn).toHaveBeenCalledTimes(2)
    expect(warn.mock.lastCall?.[0]).toMatch(/^5 enqueued items/)
  })

  describe('within a minute of the first warning', () => {
    async function lostTwice() {
      const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
      onTestFinished(() => warn.mockRestore())
      warn.mockClear()
      let close!: () => Promise<void>
      const { w, clock } = world('native', { work: [noop], autoStart: false, onError: undefined as never }, (ports) => {
        close = () => (ports as Ports & { close(): Promise<void> }).close()
        return broken(ports)
      })
      const enqueue = async (count: number) => {
        for (let n = 0; n < count; n += 1) void w.enqueue(noop(null))
        await clock.advance(10)
      }
      await enqueue(1)
      await enqueue(100)
      expect(warn).toHaveBeenCalledTimes(1)
      return { warn, close, w }
    }

    it('are reported when the backend closes, including those that fail while it waits', async () => {
      const { warn, close, w } = await lostTwice()
      for (let n = 0; n < 7; n += 1) void w.enqueue(noop(null))
      await close()

      const said = warn.mock.calls.slice(1).map(([text]) => Number(/^\d+/.exec(String(text))?.[0]))
      expect(said.reduce((sum, count) => sum + count, 0)).toBe(107)
    })

    it('are reported when the process exits, by one listener for all systems, which is removed afterwards', async () => {
      const before = process.listeners('exit')
      const systems = [await lostTwice(), await lostTwice(), await lostTwice()]
      const added = process.listeners('exit').filter((listener) => !before.includes(listener))
      expect(added).toHaveLength(1)

      const emit = vi.spyOn(process, 'emit').mockImplementation((() => true) as never)
      for (const listener of added) listener.call(process, 0)
      const calls = emit.mock.calls as readonly (readonly unknown[])[]
      const warnings = calls.filter(([event]) => event === 'warning').map(([, warning]) => warning)
      emit.mockRestore()

      expect(warnings).toHaveLength(systems.length)
      expect(warnings[0]).toMatchObject({
        name: 'MillraceWarning',
        code: 'MILLRACE_ENQUEUE_LOST',
        message: expect.stringMatching(/^100 enqueued items were not accepted.*the disk is full$/),
      })
      expect(process.listeners('exit')).toEqual(before)
    })
  })

  it('are not a warning where a caller awaits them', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    onTestFinished(() => warn.mockRestore())
    const { w } = world('native', { work: [noop], autoStart: false, onError: undefined as never }, broken)

    await expect(w.enqueue(noop(null)).accepted()).rejects.toThrow('the disk is full')
    expect(warn).not.toHaveBeenCalled()
  })
})
