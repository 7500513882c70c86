import { describe, expect, it } from 'vitest'
import { defineBatchWork, defineWork, PoisonError, RetryAbort, WorkDelayError } from '../../src/index.js'
import { body, GROUNDS, mortal, PLAIN_GROUNDS, world } from './support.js'

const circle: unknown[] = []
circle.push(circle)
const NO_JITTER = { jitter: 0 } as const

describe.each(GROUNDS)('work that fails, on %s ports', (ground) => {
  // S50
  it('is tried again until it succeeds', async () => {
    let calls = 0
    const flaky = defineWork(
      'flaky',
      (_: null, ctx) => {
        calls += 1
        if (calls < 3) throw new Error('not yet')
        return ctx.result(calls)
      },
      { retry: { attempts: 5, base: 5, factor: 1, ...NO_JITTER } },
    )
    const { w, until } = world(ground, { work: [flaky] })

    expect(await until(w.enqueue(flaky(null)).result())).toBe(3)
  })

  // S51
  it('is dead-lettered with its error once its attempts are used up', async () => {
    let calls = 0
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new Error('always')
      },
      { retry: { attempts: 2, base: 2, ...NO_JITTER } },
    )
    const { w, until, dead } = world(ground, { work: [bad] })

    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow('always')
    expect(calls).toBe(2)
    expect((await dead()) ?? 1).toBe(1)
  })

  it.each([
    ['contains itself', () => circle],
    ['holds a promise', () => ({ total: Promise.resolve(5) })],
  ])('is not tried again when its result can never be stored, because it %s', async (_why, made) => {
    let calls = 0
    const bad = defineWork('bad', (_: null, ctx) => {
      calls += 1
      return ctx.result(made())
    })
    const { w, until, events } = world(ground, { work: [bad] })

    await expect(until(w.enqueue(bad(null)).result())).rejects.toThrow('The result of work "bad" could not be encoded')
    expect(calls).toBe(1)
    expect(events.find(({ kind }) => kind === 'failed')).toMatchObject({ class: 'poison', willRetry: false })
  })

  it('is not tried again when its result in a batch can never be stored, and the other items complete', async () => {
    let calls = 0
    const both = defineBatchWork('both', {
      size: 2,
      maxWait: 1_000,
      run: (inputs: readonly number[]) => {
        calls += 1
        return inputs.map((n) => (n === 1 ? circle : n))
      },
    })
    const { w, until, events } = world(ground, { work: [both] })
    const [bad, good] = [w.enqueue(both(1)), w.enqueue(both(2))]

    expect(await until(good.result())).toBe(2)
    await expect(until(bad.result())).rejects.toThrow('The result of work "both" could not be encoded')
    expect(calls).toBe(1)
    expect(events.find(({ kind }) => kind === 'failed')).toMatchObject({ class: 'poison', willRetry: false })
  })

  it('is not tried again when its handler returns what cannot be a result, or not all instructions that it made', async () => {
    const calls = { lost: 0, part: 0 }
    const lost = defineWork('lost', (_: null) => {
      calls.lost += 1
      return part(null)
    })
    const part = defineWork('part', (_: null, ctx) => {
      calls.part += 1
      ctx.result(1)
      return ctx.void()
    })
    const { w, until } = world(ground, { work: [lost, part] })

    await expect(until(w.enqueue(lost(null)).result())).rejects.toThrow('work that nothing queues')
    await expect(until(w.enqueue(part(null)).result())).rejects.toThrow('not returned')
    expect(calls).toEqual({ lost: 1, part: 1 })
  })

  it('awaits a promise that is its result, and fails when that rejects', async () => {
    let calls = 0
    const later = defineWork('later', (_: null, ctx) => ctx.result(Promise.resolve(42)))
    const never = defineWork(
      'never',
      (_: null, ctx) => {
        calls += 1
        return ctx.result(Promise.reject(new Error('the bank is closed')))
      },
      { retry: { attempts: 2, base: 2, ...NO_JITTER } },
    )
    const { w, until } = world(ground, { work: [later, never] })

    expect(await until(w.enqueue(later(null)).result())).toBe(42)
    await expect(until(w.enqueue(never(null)).result())).rejects.toThrow('the bank is closed')
    expect(calls).toBe(2)
  })

  // S52
  it('keeps the text of a thrown value that is no error', async () => {
    const bad = defineWork(
      'bad',
      () => {
        throw 'plain string failure'
      },
      { retry: { attempts: 1 } },
    )
    const { w, until } = world(ground, { work: [bad] })

    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow('plain string failure')
  })

  // S53
  it('stops immediately when the handler aborts', async () => {
    let calls = 0
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new RetryAbort(new Error('permanent failure'))
      },
      { retry: { attempts: 5, base: 1 } },
    )
    const { w, until } = world(ground, { work: [bad] })

    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow('permanent failure')
    expect(calls).toBe(1)
  })

  // S54
  it('asks the classifier of the type, or that of the system', async () => {
    let calls = 0
    const failing = () => {
      calls += 1
      throw Object.assign(new Error('bad request'), { status: 503 })
    }
    const onFailure = (error: unknown) => ((error as { status: number }).status === 503 ? 'abort' : 'retry') as 'abort'
    const own = defineWork('own', failing, { retry: { attempts: 5, base: 1 }, onFailure })
    const systems = defineWork('systems', failing, { retry: { attempts: 5, base: 1 } })
    const { w, until } = world(ground, { work: [own, systems], onFailure })

    await expect(until(w.enqueue(own({})).result())).rejects.toThrow('bad request')
    expect(calls).toBe(1)
    await expect(until(w.enqueue(systems({})).result())).rejects.toThrow('bad request')
    expect(calls).toBe(2)
  })

  // S55
  it('defers without spending an attempt when the classifier says when', async () => {
    const seen: number[] = []
    const work = defineWork(
      'work',
      (_: null, ctx) => {
        seen.push(ctx.attempt)
        if (seen.length === 1) throw new Error('busy')
        return ctx.result('ok')
      },
      { retry: { attempts: 2 }, onFailure: () => ({ delay: 15 }) },
    )
    const { w, until, events } = world(ground, { work: [work] })

    expect(await until(w.enqueue(work(null)).result())).toBe('ok')
    expect(seen).toEqual([1, 1])
    expect(events.map((event) => event.kind)).toContain('deferred')
  })

  // S56
  it('goes on as usual when the classifier itself throws', async () => {
    let calls = 0
    const work = defineWork(
      'work',
      () => {
        calls += 1
        throw new Error('mine')
      },
      {
        retry: { attempts: 2, base: 1 },
        onFailure: () => {
          throw new Error('classifier')
        },
      },
    )
    const { w, until, errors } = world(ground, { work: [work] })

    await expect(until(w.enqueue(work({})).result())).rejects.toThrow('mine')
    expect(calls).toBe(2)
    expect(errors.map((e) => e.phase)).toContain('commit')
  })

  // S57
  it('runs again later with the same attempt when the handler defers itself', async () => {
    const seen: number[] = []
    const work = defineWork('work', (_: null, ctx) => {
      seen.push(ctx.attempt)
      if (seen.length === 1) throw new WorkDelayError({ delay: 15 })
      return ctx.void()
    })
    const { w, until, events } = world(ground, { work: [work] })
    await until(w.enqueue(work(null)).result())

    expect(seen).toEqual([1, 1])
    expect(events.map((event) => event.kind)).toContain('deferred')
    expect(w.metrics.get('work.deferred', { type: 'work' })?.value).toBe(1)
    expect(w.metrics.get('work.retried', { type: 'work' })?.value).toBe(0)
    expect(w.metrics.get('work.succeeded', { type: 'work' })?.value).toBe(1)
  })

  // S58
  it('waits out its backoff', async () => {
    let calls = 0
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new Error('x')
      },
      { retry: { attempts: 3, base: 1000, ...NO_JITTER } },
    )
    const { w, clock } = world(ground, { work: [bad] })
    w.enqueue(bad({}))
      .result()
      .catch(() => undefined)
    await clock.advance(60)

    expect(calls).toBe(1)
  })

  // S59
  it('expires instead of running after its deadline', async () => {
    let calls = 0
    const work = defineWork('work', (_: null, ctx) => {
      calls += 1
      return ctx.void()
    })
    const { w, until, events } = world(ground, { work: [work] })

    await expect(until(w.enqueue(work(null), { delay: 40, timeout: 15 }).result())).rejects.toThrow(/deadline/)
    expect(calls).toBe(0)
    expect(events.map((event) => event.kind)).toContain('expired')
  })

  // S60
  it('counts runs, retries and ends', async () => {
    const bad = defineWork(
      'bad',
      () => {
        throw new Error('x')
      },
      { retry: { attempts: 2, base: 1 } },
    )
    const { w, until } = world(ground, { work: [bad] })
    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow()
    const value = (name: string) => w.metrics.get(`work.${name}`, { type: 'bad' })?.value

    expect(value('started')).toBe(2)
    expect(value('retried')).toBe(1)
    expect(value('failed')).toBe(1)
    expect(w.metrics.get('work.attempts', { type: 'bad' })?.summary?.total).toBe(2)
  })

  it('dead-letters poison immediately, with its class and the rule that decided in the event', async () => {
    let calls = 0
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new PoisonError('malformed')
      },
      { retry: { attempts: 5, base: 1 } },
    )
    const { w, until, events } = world(ground, { work: [bad] })

    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow('malformed')
    expect(calls).toBe(1)
    expect(events.find((event) => event.kind === 'failed')).toMatchObject({
      willRetry: false,
      class: 'poison',
      rule: 'explicit',
    })
  })

  it('lets a classifier name a class, and overrule one with retry', async () => {
    const calls = { named: 0, overruled: 0 }
    const named = defineWork(
      'named',
      () => {
        calls.named += 1
        throw new Error('x')
      },
      { retry: { attempts: 5, base: 1 }, onFailure: () => 'poison' },
    )
    const overruled = defineWork(
      'overruled',
      () => {
        calls.overruled += 1
        throw new PoisonError('x')
      },
      { retry: { attempts: 3, base: 1 }, onFailure: () => 'retry' },
    )
    const { w, until } = world(ground, { work: [named, overruled] })

    await expect(until(w.enqueue(named({})).result())).rejects.toThrow()
    await expect(until(w.enqueue(overruled({})).result())).rejects.toThrow()
    expect(calls).toEqual({ named: 1, overruled: 3 })
  })

  it('expires instead of retrying past its deadline, and instead of deferring past it', async () => {
    const late = defineWork(
      'late',
      () => {
        throw new Error('x')
      },
      { retry: { attempts: 3, base: 1000, ...NO_JITTER }, timeout: 500 },
    )
    const deferred = defineWork(
      'deferred',
      () => {
        throw new WorkDelayError({ delay: 1000 })
      },
      { timeout: 500 },
    )
    const { w, until } = world(ground, { work: [late, deferred] })

    await expect(until(w.enqueue(late({})).result())).rejects.toThrow('deadline exceeded')
    await expect(until(w.enqueue(deferred({})).result())).rejects.toThrow('deadline exceeded')
  })

  it('aborts the signal when the deadline comes while it runs, and still takes the result', async () => {
    let reason: unknown
    const slow = defineWork(
      'slow',
      (_: null, ctx) =>
        new Promise<ReturnType<typeof ctx.result<string>>>((resolve) => {
          ctx.signal.addEventListener('abort', () => {
            reason = ctx.signal.reason
            resolve(ctx.result('late but done'))
          })
        }),
    )
    const { w, until } = world(ground, { work: [slow] })

    expect(await until(w.enqueue(slow(null), { timeout: 100 }).result())).toBe('late but done')
    expect(reason).toMatchObject({ code: 'DEADLINE' })
  })

  // S63 W20
  it('skips the queue with its deadline and its delay', async () => {
    let calls = 0
    const startedAt: number[] = []
    const bad = defineWork(
      'bad',
      () => {
        calls += 1
        throw new Error('x')
      },
      { retry: { attempts: 3, base: 50, ...NO_JITTER }, skipQueue: true },
    )
    const fine = defineWork(
      'fine',
      (_: null, ctx) => {
        startedAt.push(here.clock.now())
        return ctx.void()
      },
      { skipQueue: true },
    )
    const here = world(ground, { work: [bad, fine] })
    const t0 = here.clock.now()

    await expect(here.until(here.w.enqueue(bad({}), { timeout: 20 }).result())).rejects.toThrow(/deadline/)
    expect(calls).toBe(1)
    await here.until(here.w.enqueue(fine(null), { delay: 500 }).result())
    expect(startedAt[0]).toBeGreaterThanOrEqual(t0 + 490)
  })

  // S62 W2
  it('dead-letters what crashes its worker again and again', async () => {
    const runs: number[] = []
    const hang = defineWork(
      'hang',
      (_: null, ctx) => {
        runs.push(ctx.deliveries)
        return new Promise<never>(() => undefined)
      },
      { retry: { attempts: 2 } },
    )
    // Each instance takes it, and dies: it never gets another timer, so that its lease lapses.
    const here = world(ground, { work: [hang], autoStart: false, visibility: 40, heartbeat: 20 })
    const handle = here.w.enqueue(hang(null))
    const failed = handle.result()
    failed.catch(() => undefined)
    for (let i = 0; i < 5; i += 1) {
      const life = mortal(here.clock)
      here.another({ work: [hang], visibility: 40, heartbeat: 20, stopDrain: 0, clock: life.clock })
      await here.clock.advance(10)
      life.die()
      await here.clock.advance(2_000)
    }
    await expect(here.until(failed, 30_000)).rejects.toThrow(/crashed 3 times/)
    // A native backend records a start before the run only for what was held when a process died, so the first death does not count.
    expect(runs.length).toBe(here.w.capabilities.atomic ? 4 : 3)
  })
})

describe.each(GROUNDS)('a body pushed by hand, on %s ports', (ground) => {
  const noop = defineWork('noop', (_: null, ctx) => ctx.void())
  const isPlain = (PLAIN_GROUNDS as readonly string[]).includes(ground)

  // S70
  it.runIf(isPlain)('is dropped when it is no envelope', async () => {
    const { queue, size, dead, clock, errors } = world(ground, { work: [noop] })
    await queue.push('not json')
    await clock.advance(1_100)

    expect(await size()).toBe(0)
    expect((await dead()) ?? 0).toBe(0)
    expect(errors.map((e) => e.phase)).toContain('queue')
  })

  it.runIf(!isPlain)('is refused when it is no envelope, or kept as a dead letter if it came first', async () => {
    const { queue, size, clock, errors } = world(ground, { work: [noop] })
    const push = async () => queue.push('not json')
    // Whether a worker has claimed by now is up to the backend.
    const first: unknown = await push().catch((error: unknown) => error)
    const isRefused = first !== undefined
    if (isRefused) expect(first).toMatchObject({ code: 'NOT_AN_ENVELOPE' })
    await clock.advance(1_100)

    await expect(push()).rejects.toMatchObject({ code: 'NOT_AN_ENVELOPE' })
    expect(await size()).toBe(0)
    expect(await queue.deadLetters?.count()).toBe(isRefused ? 0 : 1)
    if (!isRefused) expect(errors.map((e) => e.phase)).toContain('queue')
  })

  it.runIf(isPlain)(
    // S71
    'is dead-lettered when no worker knows its type and its attempts are used up, and put back otherwise',
    async () => {
      const { queue, size, dead, clock } = world(ground, { work: [noop] })
      await queue.push(body({ id: 'a', type: 'ghost', attempt: 9, retry: { attempts: 3 } }))
      await clock.advance(1_100)
      expect((await dead()) ?? 1).toBe(1)
      await queue.push(body({ id: 'b', type: 'ghost', attempt: 1, retry: { attempts: 3 } }))
      await clock.advance(1_100)

      expect(await size()).toBe(1)
    },
  )

  // S72
  it('is dead-lettered when its input cannot be read', async () => {
    const { queue, size, dead, clock } = world(ground, { work: [noop] })
    await queue.push(body({ input: '{bad json' }))
    await clock.advance(1_100)

    expect(await size()).toBe(0)
    expect((await dead()) ?? 1).toBe(1)
  })

  it('runs when it has only the fields of the wire contract', async () => {
    const { queue, size, clock, events } = world(ground, { work: [noop] })
    await queue.push(body())
    await clock.advance(1_100)

    expect(events.map((event) => event.kind)).toContain('succeeded')
    expect(await size()).toBe(0)
  })

  it.runIf(!isPlain)('stays where it is while no worker knows its type', async () => {
    const { queue, size, dead, clock } = world(ground, { work: [noop] })
    await queue.push(body({ id: 'a', type: 'ghost', attempt: 9, retry: { attempts: 3 } }))
    await clock.advance(30_000)

    expect(await size()).toBe(1)
    expect(await dead()).toBe(0)
  })

  // W22
  it.runIf(isPlain)('is dead-lettered in the end when its type stays unknown', async () => {
    const { queue, size, clock } = world(ground, { work: [noop], pollInterval: 60_000 })
    await queue.push(body({ type: 'ghost', attempt: 1, retry: { attempts: 3 } }))
    await clock.advance(3 * 3_600_000)

    expect(await size()).toBe(0)
  })
})
