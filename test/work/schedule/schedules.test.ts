import { describe, expect, it } from 'vitest'
import { createWork, defineWork, type ScheduleConfig, schedule, stop, type WorkEvent } from '../../../src/index.js'
import type { Store } from '../../../src/ports/ports.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { GROUNDS, gate, isOnMemory, PLAIN_GROUNDS, world } from '../support.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Hours pass here: a poll every few milliseconds would be all that happens. */
const SLOW = { pollInterval: 60_000, visibility: 600_000, heartbeat: 200_000 } as const

const noop = defineWork('noop', (_: unknown, ctx) => ctx.void())

/** Times of day at which something happened, in UTC. */
const times = (all: readonly number[]) => all.map((at) => new Date(at).toISOString().slice(11, 19))
const queuedIds = (events: readonly WorkEvent[]) => events.flatMap((e) => (e.kind === 'queued' ? [e.id] : []))

/** The next full hour of this clock, so that a test can name minutes. */
async function fullHour(clock: FakeClock): Promise<number> {
  await clock.advance(HOUR - (clock.now() % HOUR))
  return clock.now()
}

describe.each(GROUNDS)('a schedule on %s ports', (ground) => {
  const open = () => {
    const { w, clock, ports, events, errors, until, another } = world(ground, { ...SLOW, work: [noop] })
    const fires: number[] = []
    const every = (minutes: number, more: Partial<ScheduleConfig> = {}): ScheduleConfig => ({
      name: 'every',
      cron: `*/${minutes} * * * *`,
      tz: 'UTC',
      run: ({ at }) => {
        fires.push(at)
        return noop(at)
      },
      ...more,
    })
    return { w, clock, ports, events, errors, until, another, fires, every }
  }

  it('fires at its times, and what it returns runs', async () => {
    const { w, clock, events, fires, every } = open()
    const from = await fullHour(clock)
    w.schedule(every(15))
    await clock.advance(HOUR)
    await clock.advance(1_000)

    expect(fires.map((at) => at - from)).toEqual([15, 30, 45, 60].map((n) => n * MINUTE))
    expect(events.filter((e) => e.kind === 'succeeded')).toHaveLength(4)
  })

  // W12
  it('keeps the id of what was built, and derives it from name and time', async () => {
    const { w, clock, events, every } = open()
    const from = await fullHour(clock)
    const built: string[] = []
    w.schedule(
      every(30, {
        run: ({ at }) => {
          const work = noop(at)
          built.push(work.id)
          return work
        },
      }),
    )
    await clock.advance(31 * MINUTE)

    expect(built).toEqual([`every@${new Date(from + 30 * MINUTE).toISOString()}`])
    expect(queuedIds(events)).toEqual(built)
  })

  it('gives the work its options, and keeps its own id', async () => {
    const { w, clock, events, every } = open()
    await fullHour(clock)
    const ready = noop('built before')
    w.schedule(every(30, { run: () => ready, options: { delay: 2 * MINUTE, priority: 3 } }))
    await clock.advance(31 * MINUTE)
    const [queued] = events.filter((e) => e.kind === 'queued')
    expect(queued).toMatchObject({ id: ready.id, kind: 'queued' })
    expect(queued!.kind === 'queued' && queued!.startAt - queued!.at).toBe(2 * MINUTE)
    await clock.advance(2 * MINUTE)

    expect(events.some((e) => e.kind === 'succeeded')).toBe(true)
  })

  // S119
  it('fires when `next` says so, in ms or as a Date, at most once a second', async () => {
    const { w, clock } = open()
    const fired = { ms: 0, date: 0 }
    w.schedule({
      name: 'ms',
      next: (n) => n,
      run: () => {
        fired.ms += 1
      },
    })
    w.schedule({
      name: 'date',
      next: (n) => new Date(n),
      run: () => {
        fired.date += 1
      },
    })
    await clock.advance(2_000)
    expect(fired.ms).toBeGreaterThanOrEqual(1)
    expect(fired.date).toBeGreaterThanOrEqual(1)
    await clock.advance(8_000)

    expect(fired.ms).toBeLessThanOrEqual(11)
    expect(fired.ms).toBeGreaterThanOrEqual(9)
  })

  it('ends when `next` says nothing', async () => {
    const { w, clock } = open()
    let asked = 0
    let fired = 0
    w.schedule({
      name: 'thrice',
      next: (now) => {
        asked += 1
        return asked <= 3 ? now + 2_000 : undefined
      },
      run: () => {
        fired += 1
      },
    })
    await clock.advance(HOUR)

    expect([asked, fired]).toEqual([4, 3])
  })

  // S120 W12
  it('two systems with a `next` fire once each time', async () => {
    const { w, clock, another, events } = open()
    const fires: string[] = []
    const config = (who: string): ScheduleConfig => ({
      name: 'pulse',
      next: (n) => n + 2_000,
      run: ({ at }) => {
        fires.push(who)
        return noop(at)
      },
    })
    w.schedule(config('a'))
    another({ ...SLOW, work: [noop] }).schedule(config('b'))
    await clock.advance(60_000)

    expect(fires.length).toBeGreaterThanOrEqual(25)
    expect(fires.length).toBeLessThanOrEqual(30)
    expect(new Set(queuedIds(events)).size).toBe(fires.length)
  })

  // S120 W12
  it('a `run` that throws is reported, and the next occurrence fires', async () => {
    const { w, clock, errors, fires, every } = open()
    await fullHour(clock)
    let calls = 0
    w.schedule(
      every(1, {
        run: ({ at }) => {
          calls += 1
          if (calls === 2) throw new Error('no work today')
          fires.push(at)
          return noop(at)
        },
      }),
    )
    await clock.advance(4 * MINUTE + 1_000)

    expect(calls).toBe(4)
    expect(fires).toHaveLength(3)
    expect(errors.map(({ error, phase }) => [String(error), phase])).toEqual([['Error: no work today', 'queue']])
  })

  // W12
  it('a `next` that throws is reported and asked again, for the same occurrence', async () => {
    const { w, clock, errors } = open()
    let asked = 0
    let fired = 0
    w.schedule({
      name: 'moody',
      next: (now) => {
        asked += 1
        if (asked === 1 || asked === 3) throw new Error('not now')
        return now + 5_000
      },
      run: () => {
        fired += 1
      },
    })
    await clock.advance(20_000)

    expect(errors.map(({ phase }) => phase)).toEqual(['queue', 'queue'])
    expect(fired).toBeGreaterThanOrEqual(2)
  })

  it('reports what `run` or `next` return and cannot be used, and goes on', async () => {
    const { w, clock, errors, every } = open()
    await fullHour(clock)
    w.schedule(every(1, { run: () => 'work' as never }))
    w.schedule({ name: 'nonsense', next: () => Number.NaN, run: () => undefined })
    await clock.advance(2 * MINUTE + 1_000)

    expect(errors.length).toBeGreaterThanOrEqual(4)
    expect(errors.every(({ phase }) => phase === 'queue')).toBe(true)
  })

  // W12
  it('the next occurrence does not wait for a `run` that takes long, whose work comes when it is done', async () => {
    const { w, clock, events, every } = open()
    await fullHour(clock)
    const hold = gate()
    let calls = 0
    w.schedule(
      every(5, {
        run: async ({ at }) => {
          calls += 1
          if (calls === 1) await hold.promise
          return noop(at)
        },
      }),
    )
    await clock.advance(11 * MINUTE)
    expect(calls).toBe(2)
    expect(queuedIds(events)).toHaveLength(1)
    hold.open()
    await clock.advance(1_000)

    expect(new Set(queuedIds(events)).size).toBe(2)
  })

  it('ten instances and one cron: one fire per occurrence', async () => {
    const { w, clock, another, events, fires, every } = open()
    const from = await fullHour(clock)
    w.schedule(every(1))
    for (let n = 0; n < 9; n += 1) another({ ...SLOW, work: [noop] }).schedule(every(1))
    await clock.advance(8 * MINUTE + 1_000)

    expect(fires.map((at) => (at - from) / MINUTE)).toEqual(Array.from({ length: 8 }, (_, n) => n + 1))
    expect(events.filter((e) => e.kind === 'succeeded')).toHaveLength(8)
  })

  // W12
  it('an instance that dies after its claim costs no occurrence', async () => {
    const { w, clock, ports, fires, events, every } = open()
    const at = (await fullHour(clock)) + 30 * MINUTE
    w.schedule(every(30))
    await clock.advance(30 * MINUTE - 1)
    await ports.store.setIfNotExists(`work:sched-run:${at}:every`, 'the dead', 90_000)
    await clock.advance(MINUTE)
    expect(fires).toEqual([])
    await clock.advance(MINUTE)

    expect(fires).toEqual([at])
    expect(queuedIds(events)).toHaveLength(1)
  })

  it('stops with the system, and goes on when that is started again', async () => {
    const { w, clock, until, fires, every } = open()
    const from = await fullHour(clock)
    w.schedule(every(10))
    await clock.advance(10 * MINUTE + 1_000)
    expect(fires).toHaveLength(1)
    await until(w.stop())
    await clock.advance(2 * HOUR)
    expect(fires).toHaveLength(1)
    w.start()
    await clock.advance(15 * MINUTE)

    // What was missed is left out by default.
    expect(times(fires)).toEqual(times([from + 10 * MINUTE, from + 2 * HOUR + 20 * MINUTE]))
  })

  it('catches up with one of what was missed, the last', async () => {
    const { w, clock, until, fires, every } = open()
    const from = await fullHour(clock)
    w.schedule(every(10, { catchUp: 'one' }))
    await clock.advance(10 * MINUTE + 1_000)
    await until(w.stop())
    await clock.advance(5 * HOUR)
    w.start()
    await clock.advance(10 * MINUTE)

    expect(times(fires)).toEqual(
      times([from + 10 * MINUTE, from + 5 * HOUR + 10 * MINUTE, from + 5 * HOUR + 20 * MINUTE]),
    )
  })

  it('catches up with all of what was missed, in order', async () => {
    const { w, clock, until, fires, events, every } = open()
    const from = await fullHour(clock)
    w.schedule(every(10, { catchUp: 'all' }))
    await clock.advance(10 * MINUTE + 1_000)
    await until(w.stop())
    await clock.advance(2 * HOUR)
    w.start()
    await clock.advance(11 * MINUTE)

    expect(fires).toEqual(Array.from({ length: 14 }, (_, n) => from + (n + 1) * 10 * MINUTE))
    expect(new Set(queuedIds(events)).size).toBe(14)
  })

  it('misses nothing when it is restarted within a minute and a half', async () => {
    const { w, clock, until, fires, every } = open()
    const from = await fullHour(clock)
    w.schedule(every(30))
    await clock.advance(30 * MINUTE - 5_000)
    await until(w.stop())
    await clock.advance(30_000)
    w.start()
    await clock.advance(5_000)

    expect(fires).toEqual([from + 30 * MINUTE])
  })

  it('fires although the system was never started, and not any more once it is cancelled', async () => {
    const { another, clock, fires, every } = open()
    await fullHour(clock)
    const idle = another({ ...SLOW, autoStart: false })
    const cancel = idle.schedule(every(1))
    await clock.advance(3 * MINUTE)
    expect(fires).toHaveLength(3)
    cancel()
    cancel()
    await clock.advance(HOUR)
    idle.start()
    await clock.advance(HOUR)

    expect(fires).toHaveLength(3)
  })

  it('spreads its fires by a jitter that only name and time decide', async () => {
    const at = async () => {
      const { w, clock, another, events, every } = open()
      const from = await fullHour(clock)
      w.schedule(every(10, { jitter: 5 * MINUTE }))
      another({ ...SLOW, work: [noop] }).schedule(every(10, { jitter: 5 * MINUTE }))
      await clock.advance(HOUR)
      return events.flatMap((e) => (e.kind === 'queued' ? [e.at - from] : []))
    }
    const [first, second] = [await at(), await at()]

    expect(first.length).toBeGreaterThanOrEqual(5)
    const late = first.map((ms) => ms % (10 * MINUTE))
    expect(new Set(late).size).toBeGreaterThan(3)
    expect(Math.max(...late)).toBeLessThan(5 * MINUTE + 1_000)
    expect(second.map((ms) => Math.round(ms / 100))).toEqual(first.map((ms) => Math.round(ms / 100)))
  })

  it('takes over when a new version of the program has another rule', async () => {
    const { w, clock, another, fires, every } = open()
    const from = await fullHour(clock)
    const cancel = w.schedule({ ...every(30), cron: '0 0 1 1 *' })
    await clock.advance(MINUTE)
    another({ ...SLOW, work: [noop] }).schedule(every(10))
    await clock.advance(MINUTE)
    cancel()
    await clock.advance(20 * MINUTE)

    expect(fires).toEqual([from + 10 * MINUTE, from + 20 * MINUTE])
  })
})

describe.runIf(isOnMemory).each(PLAIN_GROUNDS)('the record of a schedule on %s ports', (ground) => {
  it('is stored under its name, with its rule and its next time', async () => {
    const { w, clock, mem } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    w.schedule({ name: 'every', cron: ' */15  * * * *', tz: 'UTC', run: () => undefined })
    await clock.advance(15 * MINUTE + 1_000)

    expect(JSON.parse(mem.store.get('work:sched:every:next')!)).toEqual({
      spec: 'TZ=UTC */15 * * * *',
      nextAt: from + 30 * MINUTE,
    })
    expect(mem.store.get(`work:sched:every:${(from + 15 * MINUTE) / 1000}`)).toBeDefined()
  })
})

describe.each(PLAIN_GROUNDS)('a schedule on %s ports that has nothing to do', (ground) => {
  it('makes no calls to the store', async () => {
    const calls: string[] = []
    const { w, clock } = world(ground, { ...SLOW, work: [noop], autoStart: false }, (ports) => ({
      ...ports,
      store: counted(ports.store, calls),
    }))
    w.schedule({ name: 'yearly', cron: '@yearly', tz: 'UTC', run: () => undefined })
    await clock.advance(MINUTE)
    expect(calls.length).toBeGreaterThan(0)
    calls.length = 0
    await clock.advance(HOUR)

    expect(calls).toEqual([])
  })

  // W12
  it('whose process dies between enqueue and record fires no second item', async () => {
    const { w, clock, another, ports, events } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    let isCut = false
    const store: Store = {
      ...ports.store,
      set: (key, value, ttl) => (isCut && key.includes('sched:') ? silence() : ports.store.set(key, value, ttl)),
      ...(ports.store.compareAndSet === undefined
        ? {}
        : {
            compareAndSet: (key: string, ...rest: [string | undefined, string, number?]) =>
              isCut && key.includes('sched:') ? silence() : ports.store.compareAndSet!(key, ...rest),
          }),
    }
    const runs: string[] = []
    const config = (who: string): ScheduleConfig => ({
      name: 'half',
      cron: '*/30 * * * *',
      tz: 'UTC',
      run: ({ at }) => {
        runs.push(who)
        return noop(at)
      },
    })
    another({ ...SLOW, work: [noop], store }).schedule(config('dies'))
    await clock.advance(MINUTE)
    isCut = true
    await clock.advance(29 * MINUTE + 1_000)
    expect(runs).toEqual(['dies'])
    w.schedule(config('lives'))
    await clock.advance(5 * MINUTE)

    expect(runs).toEqual(['dies', 'lives'])
    expect(events.filter((e) => e.kind === 'started').map((e) => 'id' in e && e.id)).toEqual([
      `half@${new Date(from + 30 * MINUTE).toISOString()}`,
    ])
  })
})

/** The answer of a store that a dead process will never receive. */
const silence = () => new Promise<never>(() => undefined)

function counted(store: Store, calls: string[]): Store {
  const noted = Object.entries(store).map(([name, method]) => [
    name,
    (...given: unknown[]) => {
      calls.push(name)
      return (method as (...given: unknown[]) => unknown)(...given)
    },
  ])
  return Object.fromEntries(noted) as unknown as Store
}

describe('a schedule that cannot be', () => {
  const w = createWork({ autoStart: false, clock: new FakeClock() })
  const run = () => undefined

  // S119
  it('is refused immediately: neither cron nor next, or both', () => {
    expect(() => w.schedule({ name: 'x', run })).toThrow('schedule "x": provide either "cron" or "next"')
    expect(() => w.schedule({ name: 'x', cron: '@daily', next: (n) => n, run })).toThrow(/either "cron" or "next"/)
  })

  it.each<[string, unknown, RegExp]>([
    ['a bad cron', { name: 'x', cron: '61 * * * *', run }, /^cron: /],
    ['a zone that is none', { name: 'x', cron: '@daily', tz: 'Mars', run }, /schedule\.tz.*Mars/],
    ['a zone for next', { name: 'x', next: () => 1, tz: 'UTC', run }, /tz goes with cron/],
    ['no name', { cron: '@daily', run }, /schedule\.name/],
    ['no run', { name: 'x', cron: '@daily' }, /schedule\.run/],
    ['a mistyped option', { name: 'x', corn: '@daily', run }, /corn.*cron/s],
    ['a catchUp that is none', { name: 'x', cron: '@daily', run, catchUp: 'some' }, /catchUp/],
    ['a negative jitter', { name: 'x', cron: '@daily', run, jitter: -1 }, /jitter/],
    ['bad options', { name: 'x', cron: '@daily', run, options: { delay: Number.NaN } }, /schedule\.options\.delay/],
    ['nothing', undefined, /schedule\.name/],
    ['a text', '@daily', /schedule/],
  ])('%s', (_, config, message) => {
    expect(() => w.schedule(config as ScheduleConfig)).toThrow(message)
  })
})

describe('the default system', () => {
  it('schedules', async () => {
    const cancel = schedule({ name: 'default', cron: '@yearly', run: () => undefined })
    cancel()
    await stop()
    expect(cancel).toBeTypeOf('function')
  })
})
