import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { Cron as Croner } from 'croner'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { defineWork, dependency, nextAfter, type ScheduleConfig, type WorkEvent } from '../../../src/index.js'
import type { Ports } from '../../../src/ports/ports.js'
import type { FakeClock } from '../../../src/testing/fake-clock.js'
import { resolveSchedule } from '../../../src/work/schedule/config.js'
import { GROUNDS, gate, isOnMemory, PLAIN_GROUNDS, world } from '../support.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const SLOW = { pollInterval: 60_000, visibility: 600_000, heartbeat: 200_000 } as const

const noop = defineWork('noop', (_: unknown, ctx) => ctx.void())

async function fullHour(clock: FakeClock): Promise<number> {
  await clock.advance(HOUR - (clock.now() % HOUR))
  return clock.now()
}

/** How long after its occurrence an item was accepted, at most. */
const queuedLate = (events: readonly WorkEvent[]) =>
  Math.max(...events.flatMap((e) => (e.kind === 'queued' ? [e.at - Date.parse(e.id.split('@')[1]!)] : [])))

describe.each(GROUNDS)('what a schedule enqueues on %s ports', (ground) => {
  afterEach(() => {
    trace.disable()
    context.disable()
  })

  it('may be a gate, which waits for what it depends on', async () => {
    const ran: unknown[] = []
    const leaf = defineWork('leaf', (what: string, ctx) => {
      ran.push(what)
      return ctx.void()
    })
    const { w, clock, until, events, errors } = world(ground, { ...SLOW, work: [leaf] })
    await fullHour(clock)
    const first = leaf('first')
    w.schedule({
      name: 'gated',
      cron: '30 * * * *',
      tz: 'UTC',
      run: () => dependency({ on: first, queue: leaf('then'), poll: 1_000 }),
    })
    await clock.advance(31 * MINUTE)
    expect(ran).toEqual([])
    expect(events.map(({ kind }) => kind)).toEqual(['queued'])
    await until(w.enqueue(first).result(), 2 * MINUTE)
    await clock.advance(3 * MINUTE)

    expect(ran).toEqual(['first', 'then'])
    expect(errors).toEqual([])
  })

  it('may be a gate that gives up when its time is over', async () => {
    const { w, clock, events } = world(ground, { ...SLOW, work: [noop] })
    await fullHour(clock)
    w.schedule({
      name: 'gated',
      cron: '30 * * * *',
      tz: 'UTC',
      run: () => dependency({ on: 'missing', queue: noop(1), timeout: 2 * MINUTE }),
    })
    await clock.advance(31 * MINUTE)
    expect(events.filter((e) => e.kind === 'failed' || e.kind === 'expired')).toEqual([])
    await clock.advance(5 * MINUTE)

    expect(events.filter((e) => e.kind === 'failed' || e.kind === 'expired')).toHaveLength(1)
  })

  it.each(['immediately', 'later'])('is checked with the schema of its type, which answers %s', async (when) => {
    const even: StandardSchemaV1<number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) => {
          const result = Number(value) % 2 === 0 ? { value: Number(value) } : { issues: [{ message: 'not even' }] }
          return when === 'later' ? Promise.resolve(result) : result
        },
      },
    }
    const picky = defineWork('picky', (_: number, ctx) => ctx.void(), { input: even })
    const { w, clock, events, errors } = world(ground, { ...SLOW, work: [picky] })
    await fullHour(clock)
    let n = 0
    w.schedule({ name: 'minutely', cron: '* * * * *', tz: 'UTC', run: () => picky(++n) })
    await clock.advance(4 * MINUTE + 1_000)

    expect(n).toBe(4)
    expect(events.filter((e) => e.kind === 'queued')).toHaveLength(2)
    expect(errors.map(({ error, phase }) => [(error as { code: string }).code, phase])).toEqual([
      ['SCHEMA_MISMATCH', 'queue'],
      ['SCHEMA_MISMATCH', 'queue'],
    ])
  })

  it('has the span of its enqueue, a root, and its run is the child of that', async () => {
    const exporter = new InMemorySpanExporter()
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    trace.setGlobalTracerProvider(provider)
    const { w, clock, errors } = world(ground, { ...SLOW, work: [noop] })
    await fullHour(clock)
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const request = provider.getTracer('test').startSpan('request')
    context.with(trace.setSpan(context.active(), request), () => {
      w.schedule({ name: 'half', cron: '30 * * * *', tz: 'UTC', run: ({ at }) => noop(at) })
      w.schedule({ name: 'bad', cron: '45 * * * *', tz: 'UTC', run: () => noop(circle) })
    })
    await clock.advance(46 * MINUTE)

    const [good, bad, ...more] = exporter.getFinishedSpans().filter(({ name }) => name === 'enqueue noop')
    const runs = exporter.getFinishedSpans().filter(({ name }) => name === 'run noop')
    expect(more).toEqual([])
    expect(good).toMatchObject({ kind: SpanKind.PRODUCER, status: { code: SpanStatusCode.UNSET } })
    expect(good!.parentSpanContext).toBeUndefined()
    expect(bad!.status.code).toBe(SpanStatusCode.ERROR)
    expect(runs.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([good!.spanContext().spanId])
    expect(errors).toHaveLength(1)
  })
})

describe.each(GROUNDS)('the times of a schedule on %s ports', (ground) => {
  it('are all fired when the jitter is longer than what is between them', async () => {
    const { w, clock } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    const fires: { at: number; late: number }[] = []
    const run = ({ at }: { at: number }) => {
      fires.push({ at: (at - from) / MINUTE, late: clock.now() - at })
    }
    w.schedule({ name: 'spread', cron: '* * * * *', tz: 'UTC', jitter: 10 * MINUTE, run })
    await clock.advance(HOUR)

    expect(fires.length).toBeGreaterThanOrEqual(50)
    expect(fires.map(({ at }) => at)).toEqual(fires.map((_, n) => n + 1))
    expect(Math.max(...fires.map(({ late }) => late))).toBeLessThan(10 * MINUTE + 5_000)
  })

  it('are fired under both rules while two versions of a program run', async () => {
    const { w, clock, another, events } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    const fires: string[] = []
    const rule = (who: string, minutes: number): ScheduleConfig => ({
      name: 'rolling',
      cron: `*/${minutes} * * * *`,
      tz: 'UTC',
      run: ({ at }) => {
        fires.push(`${who}${(at - from) / MINUTE}`)
        return noop(at)
      },
    })
    w.schedule(rule('a', 10))
    await clock.advance(5 * MINUTE)
    another({ ...SLOW, work: [noop] }).schedule(rule('b', 15))
    await clock.advance(56 * MINUTE)

    expect(fires.map((fire) => Number(fire.slice(1)))).toEqual([10, 15, 20, 30, 40, 45, 50, 60])
    // A time that is in both rules is fired by either of them, once.
    const whose = fires.filter((fire) => Number(fire.slice(1)) % 30 !== 0)
    expect(whose).toEqual(['a10', 'b15', 'a20', 'a40', 'b45', 'a50'])
    expect(queuedLate(events)).toBeLessThan(5_000)
  })

  it('are left to the processes that stored them, while these are about to fire', async () => {
    const { w, clock, another, events } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    const fires: string[] = []
    const rule = (who: string, minutes: number): ScheduleConfig => ({
      name: 'rolling',
      cron: `*/${minutes} * * * *`,
      tz: 'UTC',
      run: async ({ at }) => {
        fires.push(`${who}${(at - from) / MINUTE}`)
        await clock.sleep(3_000)
        return noop(at)
      },
    })
    w.schedule(rule('a', 10))
    await clock.advance(10 * MINUTE + 1_000)
    another({ ...SLOW, work: [noop] }).schedule(rule('b', 15))
    await clock.advance(6 * MINUTE)

    expect(fires).toEqual(['a10', 'b15'])
    expect(events.filter((e) => e.kind === 'queued')).toHaveLength(2)
    expect(queuedLate(events)).toBeLessThan(10_000)
  })

  it('are taken over from a rule that no process follows any more, when it is overdue', async () => {
    const { w, clock, another } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    const fires: number[] = []
    const run = ({ at }: { at: number }) => {
      fires.push((at - from) / MINUTE)
    }
    const cancel = w.schedule({ name: 'old', cron: '10 * * * *', tz: 'UTC', run })
    await clock.advance(MINUTE)
    cancel()
    await clock.advance(9 * MINUTE + 30_000)
    another({ ...SLOW, work: [noop] }).schedule({ name: 'old', cron: '*/20 * * * *', tz: 'UTC', run })
    await clock.advance(35 * MINUTE)

    expect(fires).toEqual([20, 40])
  })

  it('that two rules have in common are fired when the version that agreed on them is gone', async () => {
    const { w, clock, another } = world(ground, { ...SLOW, work: [noop] })
    const from = await fullHour(clock)
    const fires: number[] = []
    const run = ({ at }: { at: number }) => {
      fires.push((at - from) / MINUTE)
    }
    const cancel = w.schedule({ name: 'both', cron: '*/10 * * * *', tz: 'UTC', run })
    await clock.advance(8 * MINUTE)
    another({ ...SLOW, work: [noop] }).schedule({ name: 'both', cron: '*/5 * * * *', tz: 'UTC', run })
    await clock.advance(MINUTE)
    cancel()
    await clock.advance(7 * MINUTE)

    expect(fires).toEqual([10, 15])
  })

  it('come although `next` once never answered, which is reported', async () => {
    const { w, clock, errors } = world(ground, { ...SLOW, work: [noop] })
    let asked = 0
    let fired = 0
    w.schedule({
      name: 'silent',
      next: (now) => {
        asked += 1
        // The first is asked to begin with, the third while an occurrence is fired.
        return asked === 1 || asked === 3 ? new Promise<never>(() => undefined) : now + MINUTE
      },
      run: () => {
        fired += 1
      },
    })
    await clock.advance(5 * MINUTE)

    expect(errors.map(({ error, phase }) => [(error as { code: string }).code, phase])).toEqual([
      ['NEXT_TIMEOUT', 'queue'],
      ['NEXT_TIMEOUT', 'queue'],
    ])
    expect(fired).toBeGreaterThanOrEqual(2)
  })
})

describe.each(PLAIN_GROUNDS)('work that came late on %s ports', (ground) => {
  const open = () => {
    const failing = { now: false }
    const ports = (plain: Ports): Ports => ({
      ...plain,
      queue: {
        ...plain.queue,
        push: async (...given: Parameters<Ports['queue']['push']>) => {
          if (failing.now) throw new Error('no queue')
          return plain.queue.push(...given)
        },
        ...(plain.queue.pushMany === undefined ? {} : { pushMany: undefined }),
      } as Ports['queue'],
    })
    const made = world(ground, { ...SLOW, work: [noop] }, ports)
    const hold = gate()
    const begin = () =>
      made.w.schedule({
        name: 'late',
        cron: '30 * * * *',
        tz: 'UTC',
        run: async ({ at }) => {
          await hold.promise
          return noop(at)
        },
      })
    return { ...made, failing, hold, begin }
  }

  // W12
  it('is enqueued once the backend takes it again', async () => {
    const { clock, events, errors, failing, hold, begin } = open()
    await fullHour(clock)
    begin()
    await clock.advance(32 * MINUTE)
    failing.now = true
    hold.open()
    await clock.advance(10_000)
    expect(errors.length).toBeGreaterThanOrEqual(2)
    expect(errors.every(({ error, phase }) => String(error) === 'Error: no queue' && phase === 'queue')).toBe(true)
    failing.now = false
    await clock.advance(MINUTE)

    expect(events.filter((e) => e.kind === 'succeeded')).toHaveLength(1)
  })

  it('is dropped when the schedule is off', async () => {
    const { clock, events, errors, failing, hold, begin } = open()
    await fullHour(clock)
    const cancel = begin()
    await clock.advance(32 * MINUTE)
    failing.now = true
    hold.open()
    await clock.advance(500)
    cancel()
    failing.now = false
    await clock.advance(HOUR)

    expect(errors).toHaveLength(1)
    expect(events.filter((e) => e.kind === 'succeeded')).toEqual([])
  })
})

describe.runIf(isOnMemory)('the last of the occurrences that were missed', () => {
  const rule = (cron: string, tz = 'Europe/Berlin') =>
    resolveSchedule({ name: 'x', cron, tz, run: () => undefined, catchUp: 'one' })
  const noon = Date.UTC(2026, 6, 15, 12, 34, 56)

  // W12
  it.each(['* * * * *', '0 * * * *', '0 9 * * MON', '* * * 1 *', '0 0 29 2 *'])('costs few steps: %s', (cron) => {
    const first = nextAfter(cron, Date.UTC(2016, 0, 1), 'Europe/Berlin')!
    const schedule = rule(cron)
    const searches = vi.spyOn(Croner.prototype, 'nextRun')
    const last = schedule.last(first, noon)
    const calls = searches.mock.calls.length
    searches.mockRestore()

    expect(calls).toBeGreaterThan(0)
    expect(calls).toBeLessThan(100)
    expect(last).toBeLessThanOrEqual(noon)
    expect(nextAfter(cron, last, 'Europe/Berlin')).toBeGreaterThan(noon)
    expect(nextAfter(cron, last - 1, 'Europe/Berlin')).toBe(last)
  })

  it('is the first where there is only that one', () => {
    const first = Date.UTC(2026, 6, 15, 9, 0)
    expect(rule('0 11 * * *').last(first, noon)).toBe(first)
    expect(rule('0 11 * * *').last(first, first)).toBe(first)
  })
})
