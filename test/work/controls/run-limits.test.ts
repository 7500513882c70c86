import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, it } from 'vitest'
import { DeadlineError, defineWork, priorityDoer, RunTimeoutError, ShutdownDeadlineError } from '../../../src/index.js'
import type { ClaimedItem, Envelope } from '../../../src/ports/item.js'
import { checkLate } from '../../../src/work/run/run-limits.js'
import { GROUNDS, gate, world } from '../support.js'

const ONCE = { retry: { attempts: 1 } } as const

describe.each(GROUNDS)('a run that takes too long, on %s ports', (ground) => {
  // W25
  it('fires its signal and counts as a failed attempt, though its handler ignores it', async () => {
    const reasons: unknown[] = []
    const ends: (() => void)[] = []
    const stuck = defineWork(
      'stuck',
      async (_: null, ctx) => {
        ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
        await new Promise<void>((end) => ends.push(end))
        return ctx.result('never counts')
      },
      { runTimeout: 400, retry: { attempts: 2, base: 10, jitter: 0 } },
    )
    const { w, until, events, clock } = world(ground, { work: [stuck] })
    const handle = w.enqueue(stuck(null))
    const result = expect(handle.result()).rejects.toThrow('runTimeout of 400 ms')
    const startedAt = clock.now()
    await until(result)

    expect(clock.now() - startedAt).toBeGreaterThanOrEqual(800)
    expect(clock.now() - startedAt).toBeLessThan(2_000)
    expect(reasons).toHaveLength(2)
    expect(reasons[0]).toBeInstanceOf(RunTimeoutError)
    expect(reasons[0]).toMatchObject({ code: 'RUN_TIMEOUT', facts: { runTimeout: 400 } })
    const failed = events.filter((event) => event.kind === 'failed')
    expect(failed.map(({ attempt, willRetry, class: failureClass }) => [attempt, willRetry, failureClass])).toEqual([
      [1, true, 'retryable'],
      [2, false, 'retryable'],
    ])
    for (const end of ends) end()
    await clock.advance(10)
    await expect(until(handle.result())).rejects.toThrow('runTimeout')
  })

  it('is asked for by the item before its type, and one that ends in time is not touched', async () => {
    const nap = defineWork(
      'nap',
      async (ms: number, ctx) => {
        await clock.sleep(ms)
        return ctx.result(ctx.signal.aborted)
      },
      { runTimeout: 100, ...ONCE },
    )
    const { w, until, clock } = world(ground, { work: [nap] })

    expect(await until(w.enqueue(nap(50)).result())).toBe(false)
    expect(await until(w.enqueue(nap(200), { runTimeout: 300 }).result())).toBe(false)
    await expect(until(w.enqueue(nap(200)).result())).rejects.toThrow('runTimeout of 100 ms')
    expect(() => w.enqueue(nap(1), { runTimeout: 0 })).toThrow('enqueue.runTimeout')
    expect(() => defineWork('bad', (_: null, ctx) => ctx.void(), { runTimeout: -1 })).toThrow('runTimeout')
  })

  it('is judged by the classifier like any failure', async () => {
    const seen: unknown[] = []
    const hang = defineWork('hang', async () => new Promise<never>(() => undefined), {
      runTimeout: 50,
      retry: { attempts: 5, base: 1 },
      onFailure: (error) => {
        seen.push(error)
        return 'poison'
      },
    })
    const { w, until } = world(ground, { work: [hang] })

    await expect(until(w.enqueue(hang(null)).result())).rejects.toThrow('runTimeout')
    expect(seen).toHaveLength(1)
    expect(seen[0]).toBeInstanceOf(RunTimeoutError)
  })

  it('leaves a handler its place in the doer until it ends, and a hung one no longer than a lease', async () => {
    const ends = new Map<string, () => void>()
    const begun: string[] = []
    const held = defineWork(
      'held',
      async (name: string, ctx) => {
        begun.push(name)
        await new Promise<void>((end) => ends.set(name, end))
        return ctx.void()
      },
      { runTimeout: 100, ...ONCE },
    )
    const { w, until, clock, errors } = world(ground, { work: [held], doer: priorityDoer({ max: 1, buffer: 0 }) })
    // Waited for from the start: a wait that begins while a claim is under way may have the item passed over for a moment.
    const [a, b, c] = ['a', 'b', 'c'].map((name) => w.enqueue(held(name)).result())
    for (const result of [a, b, c]) result!.catch(() => undefined)
    await expect(until(a!)).rejects.toThrow('runTimeout')
    await clock.advance(300)
    expect(begun).toEqual(['a'])
    ends.get('a')!()
    await expect(until(b!, 2_000)).rejects.toThrow('runTimeout')
    expect(begun).toEqual(['a', 'b'])
    await expect(until(c!, 10_000)).rejects.toThrow('runTimeout')

    expect(begun).toEqual(['a', 'b', 'c'])
    expect(errors.map(({ error }) => (error as { code?: string }).code)).toContain('HANDLER_OVERRUN')
    for (const end of ends.values()) end()
  })
})

describe.each(GROUNDS)('a deadline that comes while the run goes on, on %s ports', (ground) => {
  const slow = (at: { now: () => number; sleep: (ms: number) => Promise<void> }, seen: unknown[]) =>
    defineWork('slow', async (_: null, ctx) => {
      await at.sleep(500)
      seen.push(ctx.signal.aborted ? ctx.signal.reason : 'not aborted', ctx.deadline)
      return ctx.result('late')
    })

  it('fires the signal; what is returned still counts', async () => {
    const seen: unknown[] = []
    const type = slow({ now: () => clock.now(), sleep: (ms) => clock.sleep(ms) }, seen)
    const { w, until, clock } = world(ground, { work: [type] })

    expect(await until(w.enqueue(type(null), { timeout: 100 }).result())).toBe('late')
    expect(seen[0]).toBeInstanceOf(DeadlineError)
    expect(seen[0]).toMatchObject({ code: 'DEADLINE', facts: { deadline: seen[1] } })
  })

  // W25
  it('with strictDeadline expires then and there', async () => {
    const seen: unknown[] = []
    const type = slow({ now: () => clock.now(), sleep: (ms) => clock.sleep(ms) }, seen)
    const { w, until, clock, events } = world(ground, { work: [type] })
    const startedAt = clock.now()
    const handle = w.enqueue(type(null), { timeout: 100, strictDeadline: true })

    await expect(until(handle.result())).rejects.toThrow('deadline exceeded')
    expect(clock.now() - startedAt).toBeLessThan(500)
    await until(handle.group())
    expect(events.map(({ kind }) => kind)).toEqual(['queued', 'started', 'expired', 'group-done'])
    await clock.advance(1_000)
    await expect(until(handle.result())).rejects.toThrow('deadline exceeded')
  })

  it('a cancel counts though the signal has fired for the deadline before', async () => {
    const begun = gate()
    const deaf = defineWork('deaf', async () => {
      begun.open()
      return new Promise<never>(() => undefined)
    })
    const { w, until, clock } = world(ground, { work: [deaf] })
    const handle = w.enqueue(deaf(null), { timeout: 100 })
    const result = expect(handle.result()).rejects.toThrow('cancelled: after all')
    await until(begun.promise)
    await clock.advance(200)
    await until(handle.cancel('after all'))

    await until(result, 1_000)
  })
})

describe.each(GROUNDS)('the signal of a run, on %s ports', (ground) => {
  // W32
  it('fires when a shutdown has waited long enough, and a run that obeys goes back unspent', async () => {
    const begun = gate()
    const reasons: unknown[] = []
    const attempts: number[] = []
    const obedient = defineWork('obedient', async (_: null, ctx) => {
      attempts.push(ctx.attempt)
      if (attempts.length > 1) return ctx.result('again')
      begun.open()
      await new Promise((_resolve, reject) =>
        ctx.signal.addEventListener('abort', () => {
          reasons.push(ctx.signal.reason)
          reject(ctx.signal.reason)
        }),
      )
      return ctx.void()
    })
    const { w, until, another, clock } = world(ground, { work: [obedient], stopDrain: 300 })
    const handle = w.enqueue(obedient(null))
    await until(begun.promise)
    await until(w.stop())
    expect(reasons[0]).toBeInstanceOf(ShutdownDeadlineError)
    expect(reasons[0]).toMatchObject({ code: 'SHUTDOWN_DEADLINE' })
    another({ work: [obedient] })
    await clock.advance(6_000)

    expect(attempts).toEqual([1, 1])
    void handle
  })
})

describe('a run that blocked the event loop, so that no timer could fire', () => {
  const item = (over: Partial<Envelope>): ClaimedItem => ({
    lease: { id: 'a', queue: 'default', token: 't', fence: 1, until: 0 },
    envelope: { id: 'a', type: 't', groupId: 'g', input: '', queueAt: 0, startAt: 0, attempt: 1, priority: 0, ...over },
    lapses: 0,
    crashes: 0,
    deliveries: 1,
  })

  it('is late all the same when it took longer than it may', () => {
    expect(() => checkLate(item({ runTimeout: 100 }), 100, 0)).not.toThrow()
    expect(thrownBy(() => checkLate(item({ runTimeout: 100 }), 101, 0))).toMatchObject({
      reason: { code: 'RUN_TIMEOUT' },
    })
  })

  it('is late for a strict deadline only', () => {
    expect(() => checkLate(item({ deadline: 5 }), 0, 6)).not.toThrow()
    expect(() => checkLate(item({ deadline: 5, strictDeadline: true }), 0, 5)).not.toThrow()
    expect(thrownBy(() => checkLate(item({ deadline: 5, strictDeadline: true }), 0, 6))).toMatchObject({
      reason: { code: 'DEADLINE' },
    })
  })
})

function thrownBy(call: () => void): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  return undefined
}

/** A schema that answers immediately, or, once it `isSlow`, when the test says so. */
function slowSchema() {
  const answer = gate()
  const asked = gate()
  const state = { isSlow: false }
  const schema: StandardSchemaV1<number, number> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value) => {
        if (state.isSlow) {
          asked.open()
          await answer.promise
        }
        return { value: Number(value) }
      },
    },
  }
  return { schema, answer, asked, state }
}

describe.each(GROUNDS)('a schema that does not answer, on %s ports', (ground) => {
  function checked() {
    const slow = slowSchema()
    const state = { runs: 0 }
    const type = defineWork(
      'checked',
      (n: number, ctx) => {
        state.runs += 1
        return ctx.result(n)
      },
      { input: slow.schema, ...ONCE },
    )
    return { ...slow, type, runs: state }
  }

  it('is bounded by the runTimeout: the attempt has failed, and its handler is never called', async () => {
    const { type, state, asked, answer, runs } = checked()
    const { w, until, clock } = world(ground, { work: [type] })
    const handle = w.enqueue(type(1), { runTimeout: 100, delay: 10 })
    const result = expect(handle.result()).rejects.toThrow('runTimeout of 100 ms')
    await until(handle.accepted())
    state.isSlow = true
    await until(asked.promise)

    await until(result, 1_000)
    answer.open()
    await clock.advance(100)
    expect(runs.runs).toBe(0)
    expect(w.active()).toEqual([])
  })

  it('is bounded by the deadline, strict or not: what has not begun by then expires', async () => {
    for (const strictDeadline of [false, true]) {
      const { type, state, asked, runs } = checked()
      const { w, until, events } = world(ground, { work: [type] })
      const handle = w.enqueue(type(1), { timeout: 200, strictDeadline, delay: 10 })
      const result = expect(handle.result()).rejects.toThrow('deadline exceeded')
      await until(handle.accepted())
      state.isSlow = true
      await until(asked.promise)

      await until(result, 1_000)
      expect(runs.runs).toBe(0)
      expect(events.filter(({ kind }) => kind === 'expired')).toHaveLength(1)
    }
  })

  it('is bounded by a cancel', async () => {
    const { type, state, asked, answer, runs } = checked()
    const { w, until, clock } = world(ground, { work: [type] })
    const handle = w.enqueue(type(1), { delay: 10 })
    const result = expect(handle.result()).rejects.toThrow('cancelled: enough')
    await until(handle.accepted())
    state.isSlow = true
    await until(asked.promise)

    // Where the backend records a start, it has not recorded this one, so the item ends immediately.
    expect(['requested', 'cancelled']).toContain((await until(handle.cancel('enough'))).kind)
    await until(result, 1_000)
    answer.open()
    await clock.advance(100)
    expect(runs.runs).toBe(0)
    expect(w.active()).toEqual([])
  })

  it('is bounded by the runTimeout where it is asked about what a handler queues', async () => {
    const { type, state, runs } = checked()
    const parent = defineWork('parent', (_: null, ctx) => ctx.queue([type(1)]), { runTimeout: 100, ...ONCE })
    const { w, until } = world(ground, { work: [type, parent] })
    state.isSlow = true

    await expect(until(w.enqueue(parent(null)).result(), 1_000)).rejects.toThrow('runTimeout of 100 ms')
    expect(runs.runs).toBe(0)
  })
})
