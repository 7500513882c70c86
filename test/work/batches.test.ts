import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/core/time/clock.js'
import {
  type Doer,
  defineBatchWork,
  defineWork,
  dependency,
  PoisonError,
  priorityDoer,
  RetryAbort,
  unlimitedDoer,
  WorkDelayError,
  type WorkHandle,
} from '../../src/index.js'
import { GROUNDS, type Ground, gate, isOnMemory, PLAIN_GROUNDS, world } from './support.js'

interface N {
  readonly n: number
}

const isPlain = (ground: Ground) => (PLAIN_GROUNDS as readonly Ground[]).includes(ground)

/** Doubles, and writes down the sizes of its batches. */
function doubling(options: { size?: number; maxWait?: number; skipQueue?: boolean; doer?: Doer } = {}) {
  const sizes: number[] = []
  const double = defineBatchWork('double', {
    size: 3,
    maxWait: 20,
    ...options,
    run: (inputs: readonly N[]) => {
      sizes.push(inputs.length)
      return inputs.map(({ n }) => 2 * n)
    },
  })
  return { sizes, double }
}

describe.each(GROUNDS)('batched work on %s ports', (ground) => {
  // S85
  it('runs together what came together, and the rest when the first has waited enough', async () => {
    const { sizes, double } = doubling()
    const { w, until, events } = world(ground, { work: [double] })
    const handles = [1, 2, 3, 4, 5, 6, 7].map((n) => w.enqueue(double({ n })))
    const results = await Promise.all(handles.map((handle) => until(handle.result())))

    expect(results).toEqual([2, 4, 6, 8, 10, 12, 14])
    expect(sizes).toContain(3)
    expect(sizes.reduce((a, b) => a + b, 0)).toBe(7)
    expect(await until(handles[6]!.group())).toBe(14)
    expect(events.filter(({ kind }) => kind === 'started')).toHaveLength(7)
  })

  it('waits for `maxWait` from the first, and no longer', async () => {
    const { sizes, double } = doubling({ size: 10, maxWait: 500 })
    const { w, until, clock } = world(ground, { work: [double] })
    const one = w.enqueue(double({ n: 1 }))
    await clock.advance(300)
    const two = w.enqueue(double({ n: 2 }))
    await clock.advance(190)
    expect(sizes).toEqual([])
    await clock.advance(30)
    expect(sizes).toEqual([2])
    expect([await until(one.result()), await until(two.result())]).toEqual([2, 4])
  })

  // S86
  it('tries every item of a batch that failed again, each by itself', async () => {
    let runs = 0
    const flaky = defineBatchWork('flaky', {
      size: 2,
      maxWait: 20,
      retry: { attempts: 3, base: 5, jitter: 0 },
      run: async (inputs: readonly N[]) => {
        runs += 1
        if (runs === 1) throw new Error('not yet')
        return inputs.map(({ n }) => n)
      },
    })
    const { w, until } = world(ground, { work: [flaky] })
    const [one, two] = [w.enqueue(flaky({ n: 1 })), w.enqueue(flaky({ n: 2 }))]

    expect([await until(one.result()), await until(two.result())]).toEqual([1, 2])
    expect(runs).toBeGreaterThanOrEqual(2)
  })

  // S86
  it('treats too few outputs, or none, as a failure', async () => {
    let runs = 0
    const short = defineBatchWork('short', {
      size: 2,
      maxWait: 20,
      retry: { attempts: 3, base: 5, jitter: 0 },
      run: (inputs: readonly N[]) => {
        runs += 1
        return runs === 1 ? [] : inputs.map(({ n }) => n)
      },
    })
    const none = defineBatchWork('none', {
      size: 1,
      maxWait: 0,
      retry: { attempts: 1 },
      run: (_: readonly N[]) => undefined as never,
    })
    const { w, until, events } = world(ground, { work: [short, none] })
    const handles = [w.enqueue(short({ n: 1 })), w.enqueue(short({ n: 2 }))]

    expect(await Promise.all(handles.map((handle) => until(handle.result())))).toEqual([1, 2])
    expect(events.find(({ kind }) => kind === 'failed')).toMatchObject({
      error: expect.stringContaining('batch "short" returned 0 outputs for 2 inputs'),
    })
    await expect(until(w.enqueue(none({ n: 1 })).result())).rejects.toThrow(
      'batch "none" returned a non-array outputs for 1 inputs',
    )
  })

  it('judges every item of a failed batch by itself', async () => {
    const sizes: number[] = []
    const judged = defineBatchWork('judged', {
      size: 3,
      maxWait: 20,
      retry: { attempts: 2, base: 5, jitter: 0 },
      onFailure: (_, { attempt }) => (attempt === 1 ? 'retry' : 'abort'),
      run: (inputs: readonly N[]): number[] => {
        sizes.push(inputs.length)
        throw new PoisonError('together')
      },
    })
    const waits = defineBatchWork('waits', {
      size: 2,
      maxWait: 10,
      run: (inputs: readonly N[]) => {
        sizes.push(inputs.length)
        if (sizes.filter((size) => size === 2).length === 1) throw new WorkDelayError({ delay: 100 })
        return inputs.map(({ n }) => n)
      },
    })
    const stops = defineBatchWork('stops', {
      size: 2,
      maxWait: 10,
      run: (_: readonly N[]): number[] => {
        throw new RetryAbort(new Error('stop'))
      },
    })
    const { w, until, events } = world(ground, { work: [judged, waits, stops] })
    const handles = [1, 2, 3].map((n) => w.enqueue(judged({ n })))
    for (const handle of handles) await expect(until(handle.result())).rejects.toThrow('together')
    expect(sizes).toEqual([3, 3])
    const deferred = [1, 2].map((n) => w.enqueue(waits({ n })))
    expect(await Promise.all(deferred.map((one) => until(one.result())))).toEqual([1, 2])
    expect(events.filter(({ kind }) => kind === 'deferred')).toHaveLength(2)
    await expect(until(w.enqueue(stops({ n: 1 })).result())).rejects.toThrow('stop')
  })

  it('settles each item by the outcome that the handler returned for it', async () => {
    const runs: number[][] = []
    const asked: unknown[] = []
    const mixed = defineBatchWork('mixed', {
      size: 6,
      maxWait: 20,
      retry: { attempts: 3, base: 50, jitter: 0 },
      onFailure: (error) => {
        asked.push((error as Error).message)
        return undefined
      },
      run: (inputs: readonly N[], { ok, fail }) => {
        runs.push(inputs.map(({ n }) => n))
        const isFirst = runs.length === 1
        return inputs.map(({ n }) => {
          if (n === 1) return ok(`ok ${n}`)
          if (n === 2) return `plain ${n}`
          if (n === 3) return fail(new PoisonError('bad 3'))
          if (n === 4 && isFirst) return fail(new Error('flaky 4'))
          if (n === 5) return fail(new RetryAbort(new Error('stop 5')))
          if (n === 6 && isFirst) return fail(new WorkDelayError({ delay: 10_000 }))
          return ok(`again ${n}`)
        })
      },
    })
    const { w, until, events, dead } = world(ground, { work: [mixed] })
    const handles = [1, 2, 3, 4, 5, 6].map((n) => w.enqueue(mixed({ n })))
    const ends = await Promise.all(handles.map((one) => until(one.result()).catch((error) => (error as Error).message)))

    expect(ends).toEqual([
      'ok 1',
      'plain 2',
      expect.stringContaining('bad 3'),
      'again 4',
      expect.stringContaining('stop 5'),
      'again 6',
    ])
    expect(runs).toEqual([[1, 2, 3, 4, 5, 6], [4], [6]])
    expect(asked.sort()).toEqual(['bad 3', 'flaky 4'])
    expect([undefined, 2]).toContain(await dead())
    const failed = events.filter((event) => event.kind === 'failed')
    expect(
      failed.map(({ id, willRetry }) => [handles.findIndex((one) => one.id === id) + 1, willRetry]).sort(),
    ).toEqual([
      [3, false],
      [4, true],
      [5, false],
    ])
    expect(events.filter((event) => event.kind === 'deferred').map(({ id }) => id)).toEqual([handles[5]!.id])
    expect(await until(handles[0]!.group())).toBe('ok 1')
  })

  it('awaits outputs that are promises, and fails only the items whose promises reject', async () => {
    const runs: number[] = []
    const later = defineBatchWork('later', {
      size: 5,
      maxWait: 20,
      run: (inputs: readonly N[], { ok, fail }) => {
        runs.push(inputs.length)
        return inputs.map(async ({ n }) => {
          await Promise.resolve()
          if (n === 1) return 1
          if (n === 2) return ok(Promise.resolve(2))
          if (n === 3) throw new PoisonError('bad 3')
          if (n === 4) return ok(Promise.reject(new PoisonError('bad 4')))
          return fail(new PoisonError('bad 5'))
        })
      },
    })
    const short = defineBatchWork('short', {
      size: 2,
      maxWait: 20,
      retry: { attempts: 1 },
      run: (_: readonly N[]) => [Promise.reject(new Error('one too few'))] as Promise<number>[],
    })
    const { w, until } = world(ground, { work: [later, short] })
    const ends = (handles: readonly WorkHandle[]) =>
      Promise.all(handles.map((one) => until(one.result()).catch((error) => (error as Error).message)))

    expect(await ends([1, 2, 3, 4, 5].map((n) => w.enqueue(later({ n }))))).toEqual([
      1,
      2,
      expect.stringContaining('bad 3'),
      expect.stringContaining('bad 4'),
      expect.stringContaining('bad 5'),
    ])
    expect(runs).toEqual([5])
    const tooFew = expect.stringContaining('returned 1 outputs for 2 inputs')
    expect(await ends([1, 2].map((n) => w.enqueue(short({ n }))))).toEqual([tooFew, tooFew])
  })

  it('settles items that were cancelled before they ran by themselves as cancelled', async () => {
    const hold = gate()
    const single: number[] = []
    const bulk = defineBatchWork('bulk', {
      size: 3,
      maxWait: 20,
      run: async (inputs: readonly N[]) => {
        if (inputs.length > 1) throw new PoisonError('one of you')
        single.push(inputs[0]!.n)
        await hold.promise
        return inputs.map(({ n }) => n)
      },
    })
    const { w, until, clock } = world(ground, { work: [bulk] })
    const handles = [1, 2, 3].map((n) => w.enqueue(bulk({ n })))
    await clock.advance(1_000)
    expect(single).toEqual([1])
    await until(handles[1]!.cancel('not needed'))
    await clock.advance(10_000)
    hold.open()

    const ends = handles.map((one) => until(one.result()).catch((error) => (error as Error).message))
    expect(await Promise.all(ends)).toEqual([1, expect.stringContaining('cancelled'), 3])
    expect(single).toEqual([1, 3])
  })

  it('returns items that have not run by themselves yet when the system stops', async () => {
    const hold = gate()
    let isFirst = true
    const bulk = defineBatchWork('bulk', {
      size: 3,
      maxWait: 20,
      run: async (inputs: readonly N[]) => {
        if (inputs.length > 1 && isFirst) throw new PoisonError('one of you')
        if (isFirst) await hold.promise
        return inputs.map(({ n }) => n)
      },
    })
    const { w, until, clock, another, dead } = world(ground, { work: [bulk], stopDrain: 1_000 })
    const handles = [1, 2, 3].map((n) => w.enqueue(bulk({ n })))
    await clock.advance(1_000)
    const stopped = w.stop()
    await clock.advance(1_100)
    isFirst = false
    hold.open()
    await until(stopped)
    const next = another({ work: [bulk] })
    expect(next.active()).toEqual([])

    expect(await Promise.all(handles.map((one) => until(one.result())))).toEqual([1, 2, 3])
    expect([undefined, 0]).toContain(await dead())
  })

  it('writes what ran by itself after a throw within some seconds, and brings the rest back', async () => {
    const runs: number[] = []
    const work = defineBatchWork('slow', {
      size: 6,
      maxWait: 10,
      run: async (inputs: readonly { n: number }[]) => {
        runs.push(inputs.length)
        await clock.sleep(3_000)
        if (inputs.some(({ n }) => n === 0)) throw new PoisonError('the first one is bad')
        return inputs.map(({ n }) => n)
      },
    })
    const { w, clock, until } = world(ground, { work: [work] })
    const handles = [0, 1, 2, 3, 4, 5].map((n) => w.enqueue(work({ n })))
    const outcomes = Promise.allSettled(handles.map((handle) => handle.result()))
    // The batch, and two of its items by themselves: six runs in a row would take 21 s before the first is written.
    await clock.advance(9_500)
    const states = await until(w.states(handles.slice(0, 2).map(({ id }) => id)))
    expect(states.map((state) => state?.status)).toEqual(['dead', 'success'])

    const settled = await until(outcomes)
    expect(settled.map(({ status }) => status)).toEqual(['rejected', ...Array(5).fill('fulfilled')])
    expect(runs).toEqual([6, 1, 1, 4])
  })

  it('takes the outcome of an item that runs by itself', async () => {
    const single = defineBatchWork('single', {
      size: 5,
      maxWait: 0,
      retry: { attempts: 2, base: 5, jitter: 0 },
      run: (inputs: readonly N[], { ok, fail }) =>
        inputs.map(({ n }) => (n === 1 ? ok(n) : n === 2 ? ok() : fail(new PoisonError('bad')))),
    })
    const { w, until, events } = world(ground, { work: [single] })
    for (const skipQueue of [false, true]) {
      expect(await until(w.enqueue(single({ n: 1 }), { skipQueue }).result())).toBe(1)
      expect(await until(w.enqueue(single({ n: 2 }), { skipQueue }).group())).toBeUndefined()
      await expect(until(w.enqueue(single({ n: 3 }), { skipQueue }).result())).rejects.toThrow('bad')
    }
    expect(events.filter(({ kind }) => kind === 'failed')).toHaveLength(2)
  })

  it('refuses an outcome that was made and not returned, unless that is allowed', async () => {
    const forgets = (name: string, strictReturn?: boolean) =>
      defineBatchWork(name, {
        size: 2,
        maxWait: 20,
        ...(strictReturn === undefined ? {} : { strictReturn }),
        run: (inputs: readonly N[], { fail }) =>
          inputs.map(({ n }) => {
            if (n === 2) fail(new Error('forgotten'))
            return n
          }),
      })
    const [strict, lax] = [forgets('strict'), forgets('lax', false)]
    const { w, until, another } = world(ground, { work: [strict, lax] })
    const both = [1, 2].map((n) => w.enqueue(strict({ n })))
    // Which of the two it was meant for is found out by running each by itself.
    expect(await until(both[0]!.result())).toBe(1)
    await expect(until(both[1]!.result())).rejects.toThrow('not returned')
    await expect(until(w.enqueue(strict({ n: 2 }), { skipQueue: true }).result())).rejects.toThrow('not returned')
    expect(await Promise.all([1, 2].map((n) => until(w.enqueue(lax({ n })).result())))).toEqual([1, 2])
    await until(w.stop())

    const loose = another({ work: [strict], strictReturn: false })
    expect(await Promise.all([1, 2].map((n) => until(loose.enqueue(strict({ n })).result())))).toEqual([1, 2])
    expect(await until(loose.enqueue(strict({ n: 2 }), { skipQueue: true }).result())).toBe(2)
  })

  it('runs the items of a batch one by one when its throw would dead-letter all of them', async () => {
    const runs: number[][] = []
    const bulk = defineBatchWork('bulk', {
      size: 4,
      maxWait: 20,
      run: (inputs: readonly N[]) => {
        runs.push(inputs.map(({ n }) => n))
        return inputs.map(({ n }) => {
          if (n === 3) throw new PoisonError('bad 3')
          return n
        })
      },
    })
    const { w, until, events, dead } = world(ground, { work: [bulk] })
    const handles = [1, 2, 3, 4].map((n) => w.enqueue(bulk({ n })))
    const ends = await Promise.all(handles.map((one) => until(one.result()).catch((error) => (error as Error).message)))

    expect(ends).toEqual([1, 2, expect.stringContaining('bad 3'), 4])
    expect(runs).toEqual([[1, 2, 3, 4], [1], [2], [3], [4]])
    expect([undefined, 1]).toContain(await dead())
    // It is one attempt: each of them began once, and has failed or not.
    expect(events.filter(({ kind }) => kind === 'started')).toHaveLength(4)
    expect(events.filter(({ kind }) => kind === 'failed')).toMatchObject([{ id: handles[2]!.id, attempt: 1 }])
  })

  it('runs no item by itself when the throw says stop, or when attempts are used up', async () => {
    const sizes: number[] = []
    const throwing = (name: string, error: Error) =>
      defineBatchWork(name, {
        size: 2,
        maxWait: 20,
        retry: { attempts: 2, base: 5, jitter: 0 },
        run: (inputs: readonly N[]): number[] => {
          sizes.push(inputs.length)
          throw error
        },
      })
    const [stops, fails] = [throwing('stops', new RetryAbort(new Error('stop'))), throwing('fails', new Error('busy'))]
    const { w, until } = world(ground, { work: [stops, fails] })
    const stopped = [1, 2].map((n) => w.enqueue(stops({ n })))
    for (const one of stopped) await expect(until(one.result())).rejects.toThrow('stop')
    expect(sizes).toEqual([2])
    const failed = [1, 2].map((n) => w.enqueue(fails({ n })))
    for (const one of failed) await expect(until(one.result())).rejects.toThrow('busy')
    expect(sizes).toEqual([2, 2, 2])
  })

  it('gives an item that runs by itself after a throw the time of a whole run', async () => {
    const hangs = gate()
    const slow = defineBatchWork('slow', {
      size: 3,
      maxWait: 20,
      runTimeout: 1_000,
      retry: { attempts: 1 },
      run: async (inputs: readonly N[]) => {
        if (inputs.length > 1) throw new PoisonError('one of you')
        if (inputs[0]!.n === 2) await hangs.promise
        return inputs.map(({ n }) => n)
      },
    })
    const { w, until, clock } = world(ground, { work: [slow] })
    const handles = [1, 2, 3].map((n) => w.enqueue(slow({ n })))
    const began = clock.now()
    const ends = await Promise.all(handles.map((one) => until(one.result()).catch((error) => (error as Error).message)))

    expect(ends).toEqual([1, expect.stringContaining('runTimeout'), 3])
    expect(clock.now() - began).toBeGreaterThanOrEqual(1_000)
    hangs.open()
  })

  it.each(['throw', 'fail', 'onFailure'] as const)(
    'runs items that were deferred together by %s in one batch again',
    async (by) => {
      const runs: number[] = []
      const clock = { isMoving: false, aheadMs: 0 }
      const waits = defineBatchWork('waits', {
        size: 10,
        // Plain ports write one item after the other, and cannot do it in one instant.
        maxWait: isPlain(ground) ? 50 : 0,
        ...(by === 'onFailure' ? { onFailure: () => ({ delay: 5_000 }) } : {}),
        run: (inputs: readonly N[], { fail }) => {
          runs.push(inputs.length)
          if (runs.length > 1) return inputs.map(({ n }) => n)
          clock.isMoving = true
          const error = by === 'onFailure' ? new Error('not yet') : new WorkDelayError({ delay: 5_000 })
          if (by === 'fail') return inputs.map(() => fail(error))
          throw error
        },
      })
      const { until, events, another, clock: still } = world(ground, { autoStart: false })
      // Time passes while the outcomes of a batch are worked out, as it does on a real machine.
      const read = (ms: number) => ms + (clock.isMoving ? clock.aheadMs++ : clock.aheadMs)
      const moving: Clock = {
        now: () => read(still.now()),
        monotonic: () => read(still.monotonic()),
        after: (ms, run) => still.after(ms, run),
        sleep: (ms, signal) => still.sleep(ms, signal),
      }
      const w = another({
        work: [waits],
        clock: moving,
        onEvent: (event) => {
          events.push(event)
          if (event.kind === 'deferred') clock.isMoving = false
        },
      })
      const handles = Array.from({ length: 10 }, (_, n) => w.enqueue(waits({ n })))
      await Promise.all(handles.map((one) => until(one.result())))

      // Time did pass meanwhile. How often the clock is read on the way is not promised: on a server it depends on its replies.
      expect(clock.aheadMs).toBeGreaterThan(1)
      const due = events.flatMap((event) => (event.kind === 'deferred' ? [event.runAt] : []))
      expect([due.length, new Set(due).size]).toEqual([10, 1])
      expect(runs).toEqual([10, 10])
    },
  )

  it('brings items back together after a throw without jitter, and apart with it', async () => {
    const sizes: Record<string, number[]> = { together: [], apart: [] }
    const again = (name: 'together' | 'apart', jitter: number) =>
      defineBatchWork(name, {
        size: 4,
        maxWait: 10,
        retry: { attempts: 2, base: 10_000, jitter },
        run: (inputs: readonly N[]) => {
          sizes[name]!.push(inputs.length)
          if (sizes[name]!.length === 1) throw new Error('busy')
          return inputs.map(({ n }) => n)
        },
      })
    const [together, apart] = [again('together', 0), again('apart', 1)]
    let drawn = 0
    const { w, until } = world(ground, { work: [together, apart], random: () => (drawn++ % 4) / 4 })
    const handles = [together, apart].flatMap((work) => [1, 2, 3, 4].map((n) => w.enqueue(work({ n }))))
    await Promise.all(handles.map((one) => until(one.result())))

    expect(sizes).toEqual({ together: [4, 4], apart: [4, 1, 1, 1, 1] })
  })

  // W31
  it('contributes nothing where the output is undefined', async () => {
    const quiet = defineBatchWork('quiet', {
      size: 2,
      maxWait: 10,
      run: (inputs: readonly N[]) => inputs.map(({ n }) => (n === 1 ? undefined : n)),
    })
    const root = defineWork('root', (_: null, ctx) => ctx.queue([ctx.result('kept'), quiet({ n: 1 }), quiet({ n: 1 })]))
    const { w, until } = world(ground, { work: [quiet, root] })

    expect(await until(w.enqueue(root(null)))).toBe('kept')
    const handles = [w.enqueue(quiet({ n: 1 })), w.enqueue(quiet({ n: 2 }))]
    expect(await until(handles[0]!.result())).toBeUndefined()
    expect(await until(handles[0]!.group())).toBeUndefined()
    expect(await until(handles[1]!.group())).toBe(2)
  })

  it('does not let one that cannot be read or is too late stop the others', async () => {
    const seen: unknown[] = []
    const codec = {
      stringify: (value: unknown) => JSON.stringify(value),
      parse: (text: string) => {
        if (text.includes('13')) throw new Error('unlucky')
        return JSON.parse(text) as unknown
      },
    }
    const odd = defineBatchWork('odd', {
      size: 3,
      maxWait: 100,
      codec,
      run: (inputs: readonly N[]) => {
        seen.push(...inputs)
        return inputs.map(({ n }) => (n === 3 ? () => undefined : n))
      },
    })
    const { w, until } = world(ground, { work: [odd] })
    const [unreadable, late] = [w.enqueue(odd({ n: 13 })), w.enqueue(odd({ n: 2 }), { timeout: 50 })]
    await expect(until(unreadable.result())).rejects.toThrow('bad input')
    await expect(until(late.result())).rejects.toThrow('deadline exceeded')
    const [good, unwritable] = [w.enqueue(odd({ n: 1 })), w.enqueue(odd({ n: 3 }), { retry: { attempts: 1 } })]
    expect(await until(good.result())).toBe(1)
    await expect(until(unwritable.result())).rejects.toThrow('returned a function')
    expect(seen).toEqual([{ n: 1 }, { n: 3 }])
  })

  // S87
  it('runs what skips the queue as a batch of one', async () => {
    const { sizes, double } = doubling({ size: 50, maxWait: 60_000, skipQueue: true })
    const { w, until, clock } = world(ground, { work: [double] })
    const began = clock.now()
    const handle = w.enqueue(double({ n: 4 }))

    expect([await until(handle.result()), await until(handle.group())]).toEqual([8, 8])
    expect(sizes).toEqual([1])
    expect(clock.now() - began).toBeLessThan(1_000)
  })

  // S74
  it('takes nothing while its doer has no room', async () => {
    const { sizes, double } = doubling({
      doer: { available: () => 0, do: () => undefined, done: async () => undefined },
    })
    const { w, clock } = world(ground, { work: [double], doer: unlimitedDoer() })
    void w.enqueue(double({ n: 1 }))
    await clock.advance(200)

    expect(sizes).toEqual([])
    expect(w.active()).toEqual([])
  })

  // S88
  it('puts all of a batch back when its doer refuses it', async () => {
    let refuses = 2
    const inner = unlimitedDoer()
    const doer: Doer = {
      ...inner,
      do: (task, hints) => {
        if (refuses-- > 0) throw new Error('doer boom')
        inner.do(task, hints)
      },
    }
    const { sizes, double } = doubling({ doer })
    const { w, until, errors } = world(ground, { work: [double] })
    const handles = [1, 2, 3].map((n) => w.enqueue(double({ n })))

    expect(await Promise.all(handles.map((handle) => until(handle.result())))).toEqual([2, 4, 6])
    expect(errors.filter(({ phase }) => phase === 'queue')).toHaveLength(2)
    expect(sizes.reduce((a, b) => a + b, 0)).toBe(3)
    expect(w.active()).toEqual([])
  })

  it('runs what it has gathered when it is stopped', async () => {
    const { sizes, double } = doubling({ size: 50, maxWait: 600_000 })
    const { w, until, clock, another } = world(ground, { work: [double] })
    const handles = [1, 2].map((n) => w.enqueue(double({ n })))
    await clock.advance(1_000)
    expect([sizes, w.active().length]).toEqual([[], 2])
    await until(w.stop())

    expect(sizes).toEqual([2])
    const elsewhere = another({ work: [double], autoStart: false })
    expect(elsewhere.active()).toEqual([])
    expect(await until(handles[0]!.result())).toBe(2)
  })

  it('keeps the leases of what it gathers', async () => {
    const { sizes, double } = doubling({ size: 50, maxWait: 30_000 })
    const { w, until } = world(ground, { work: [double], visibility: 1_000, heartbeat: 300 })
    const handles = [1, 2].map((n) => w.enqueue(double({ n })))

    expect(await Promise.all(handles.map((handle) => until(handle.result())))).toEqual([2, 4])
    expect(sizes).toEqual([2])
  })

  it('flows through a small doer as fast as it runs, one place for each batch', async () => {
    let running = 0
    let peak = 0
    const busy = defineBatchWork('busy', {
      size: 5,
      maxWait: 5,
      doer: priorityDoer({ max: 1 }),
      run: async (inputs: readonly N[]) => {
        running += 1
        peak = Math.max(peak, running)
        await Promise.resolve()
        running -= 1
        return inputs.map(({ n }) => n)
      },
    })
    const { w, until, clock } = world(ground, { work: [busy], pollInterval: 1_000 })
    const began = clock.now()
    const handles = Array.from({ length: 100 }, (_, n) => w.enqueue(busy({ n })))
    await Promise.all(handles.map((handle) => until(handle.result())))

    expect(peak).toBe(1)
    expect(clock.now() - began).toBeLessThan(1_000)
  })

  it('may be waited for by gates, and follow them', async () => {
    const { sizes, double } = doubling({ size: 2 })
    const root = defineWork('root', (_: null, ctx) =>
      ctx.queue([double({ n: 1 }), double({ n: 2 })]).next([double({ n: 3 }), double({ n: 3 })]),
    )
    const { w, until } = world(ground, { work: [double, root] })
    expect(await until(w.enqueue(root(null)))).toBe(6)
    expect(sizes).toEqual([2, 2])
    const [a, b] = [double({ n: 7 }), double({ n: 8 })]
    void w.enqueue(a)
    expect(await until(w.enqueue(dependency({ on: a, queue: b })))).toBe(16)
  })
})

describe('a batched type', () => {
  it('says what is wrong with its options', () => {
    const run = (inputs: readonly N[]) => inputs
    expect(() => defineBatchWork('x', { size: 0, maxWait: 1, run })).toThrow('work "x" size')
    expect(() => defineBatchWork('x', { size: 1, maxWait: -1, run })).toThrow('work "x" maxWait')
    expect(() => defineBatchWork('x', { size: 1, maxWait: 1 } as never)).toThrow('work "x" run')
    expect(() => defineBatchWork('x', { size: 1, maxWait: 1, run, retri: 3 } as never)).toThrow('Did you mean "retry"?')
    expect(() => defineBatchWork('', { size: 1, maxWait: 1, run })).toThrow('non-empty')
  })

  it.runIf(isOnMemory)('has one place in its doer per batch, and none of it open while the batch runs', async () => {
    const release = gate()
    const doer = priorityDoer({ max: 1, buffer: 0 })
    const held = defineBatchWork('held', {
      size: 2,
      maxWait: 5,
      doer,
      run: async (inputs: readonly N[]) => {
        await release.promise
        return inputs.map(({ n }) => n)
      },
    })
    const { w, until, clock } = world('native', { work: [held] })
    const handles = Array.from({ length: 40 }, (_, n) => w.enqueue(held({ n })))
    await clock.advance(100)
    expect(w.active().filter(({ status }) => status === 'running')).toHaveLength(2)
    release.open()
    await Promise.all(handles.map((handle) => until(handle.result())))
  })
})
