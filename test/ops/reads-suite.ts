import { type Clock, createWork, defineWork, PoisonError, WorkDelayError } from 'millrace'
import { openOps } from 'millrace/ops'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tapped } from '../work/controls/tapped.js'
import type { OpenedGround } from '../work/grounds/ground.js'

const noop = defineWork('noop', (_: number, ctx) => ctx.void())
const poison = defineWork('poison', (n: number) => {
  throw new PoisonError(`never ${n}`)
})
const flaky = defineWork('flaky', () => Promise.reject(new Error('not yet')), {
  retry: { attempts: 3, base: 20_000, jitter: 0 },
})
const hang = defineWork('hang', () => new Promise<never>(() => undefined))

const strict = defineWork('strict', () => new Promise<never>(() => undefined), { strictDeadline: true })
const late = defineWork('late', (_: number, ctx) => {
  if (isEarly.has(ctx.id)) return
  isEarly.add(ctx.id)
  throw new WorkDelayError({ delay: 5_000 })
})
/** Items of `late` that have been put off. */
const isEarly = new Set<string>()

/** A backend of a ground with a system on it, ops, and a count of what ops asks the backend. */
function scene(open: () => OpenedGround) {
  const { backend, clock, close } = open()
  const calls: string[] = []
  const counting = tapped((ledger) => ({
    ...count(ledger, ['claim', 'read', 'groups', 'paused'] as const, calls),
    ...(ledger.inspect === undefined
      ? {}
      : { inspect: { ...ledger.inspect, ...count(ledger.inspect, Object.keys(ledger.inspect) as never, calls) } }),
  }))
  const w = createWork({
    backend,
    clock,
    work: [noop, poison, flaky, hang, late, strict],
    autoStart: false,
    stopDrain: 0,
  })
  onTestFinished(async () => {
    const stopped = w.stop()
    await clock.advance(1_000)
    await stopped
    await close()
  })
  return { backend, clock, w, calls, ops: openOps(counting(backend), { clock }) }
}

function count<T extends object>(of: T, names: readonly (keyof T & string)[], calls: string[]): Partial<T> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const call: unknown = of[name]
      if (typeof call !== 'function') return []
      const counted = (...given: unknown[]): unknown => {
        calls.push(name)
        return call.apply(of, given)
      }
      return [[name, counted]]
    }),
  ) as Partial<T>
}

/** What ops reads, on one backend. */
export function describeReads(name: string, open: () => OpenedGround): void {
  describe(`what ops reads on ${name}`, () => {
    it('finds an item by the beginning of its id, by exactly its id first, and names several', async () => {
      const { w, ops } = scene(open)
      for (const id of ['o-1', 'o-12', 'x%y', 'x_z']) await w.add(noop(1), { id })
      expect(await ops.findId('o-1')).toBe('o-1')
      expect(await ops.findId('o-12')).toBe('o-12')
      expect(await ops.findId('x%')).toBe('x%y')
      expect(await ops.findId('x_')).toBe('x_z')
      expect(await ops.findId('y')).toBeUndefined()
      await expect(ops.findId('o')).rejects.toMatchObject({
        code: 'AMBIGUOUS_ID',
        message: 'Several items have an id that begins with "o":\n  o-1\n  o-12\nType more of it.',
      })
      await expect(ops.findId('')).rejects.toThrow('findId')
    })

    it('says of each run what it came to', async () => {
      const { w, clock, ops } = scene(open)
      isEarly.clear()
      w.start()
      await w.add(noop(1), { id: 'done' })
      await w.add(poison(1), { id: 'dead' })
      await w.add(late(1), { id: 'late' })
      await w.add(hang(undefined), { id: 'cancelled' })
      await w.add(strict(undefined), { id: 'expired', timeout: 2_000 })
      await clock.advance(500)
      await w.cancel('cancelled', 'no longer wanted')
      await clock.advance(20_000)
      const outcomes = async (id: string) => (await ops.item(id))?.attempts.map(({ outcome }) => outcome)
      expect(await outcomes('done')).toEqual(['succeeded'])
      expect(await outcomes('dead')).toEqual(['failed'])
      expect(await outcomes('late')).toEqual(['deferred', 'succeeded'])
      expect(await outcomes('cancelled')).toEqual(['cancelled'])
      expect(await outcomes('expired')).toEqual(['expired'])
      // Redriven, it begins again at attempt 1: that is a redrive and no deferral.
      await ops.redrive('cancelled', { who: 'ana' })
      await clock.advance(500)
      const texts = (await ops.item('cancelled'))?.timeline.map(({ what, text }) => `${what}: ${text}`)
      expect(texts).toContainEqual('cancelled: It was cancelled.')
      expect(texts?.filter((text) => text.startsWith('deferred'))).toEqual([])
    })

    it('is the whole in one overview: counts, rates, the oldest wait, workers and pauses', async () => {
      const { w, clock, ops } = scene(open)
      for (let n = 0; n < 5; n += 1) await w.enqueue(noop(n)).accepted()
      await w.enqueue(noop(9), { delay: 600_000 }).accepted()
      await clock.advance(7_000)
      const before = await ops.overview()
      expect(before.rows).toMatchObject([
        { queue: 'default', type: 'noop', counts: { waiting: 5, scheduled: 1, dead: 0 }, workers: 0 },
      ])
      expect(before.rows[0]).toMatchObject({ completedPerMinute: 0, oldestWaitMs: 7_000 })

      await w.enqueue(poison(1)).accepted()
      await w.pause({ queue: 'empty' }, 'nobody is there')
      w.start()
      await clock.advance(100)
      const after = await ops.overview()
      expect(after.rows).toMatchObject([
        { type: 'noop', counts: { waiting: 0, scheduled: 1, completed: 5 }, completedPerMinute: 5, workers: 1 },
        { type: 'poison', counts: { dead: 1 }, failedPerMinute: 1 },
      ])
      expect(after.rows[0]).not.toHaveProperty('oldestWaitMs')
      expect(after.paused).toEqual({ queues: ['empty'], types: [] })
      expect(after.workers).toMatchObject([{ isAlive: true, queues: ['default'] }])

      await clock.advance(61_000)
      expect((await ops.overview()).rows[0]).toMatchObject({ completedPerMinute: 0, counts: { completed: 5 } })
    })

    it('costs an overview five calls, however many items there are', async () => {
      const { w, ops, calls } = scene(open)
      await w.enqueueMany(Array.from({ length: 10 }, (_, n) => noop(n)))
      await ops.overview()
      const few = calls.splice(0)
      await w.enqueueMany(Array.from({ length: 300 }, (_, n) => poison(n)))
      await ops.overview()
      expect(calls.toSorted()).toEqual(['claim', 'counts', 'paused', 'throughput', 'workers'])
      expect(few.toSorted()).toEqual(calls.toSorted())
    })

    it('groups failures by what failed, the largest first, at most so many', async () => {
      const { w, clock, ops } = scene(open)
      for (let n = 0; n < 3; n += 1) await w.enqueue(poison(n)).accepted()
      await w.enqueue(flaky(null)).accepted()
      w.start()
      await clock.advance(100)
      const groups = await ops.failures()
      expect(groups).toMatchObject([
        { type: 'poison', class: 'poison', dead: 3, retrying: 0, sample: { error: expect.stringContaining('never') } },
        { type: 'flaky', class: 'retryable', dead: 0, retrying: 1 },
      ])
      expect((await ops.list({ fingerprint: groups[0]?.fingerprint ?? '' })).items).toHaveLength(3)
      expect(await ops.failures(1)).toHaveLength(1)
      await expect(ops.failures(0)).rejects.toMatchObject({ code: 'BAD_OPTION' })
    })

    it('groups also what died without a run, so that it is seen and redriven as one', async () => {
      const { w, clock, ops } = scene(open)
      for (let n = 0; n < 2; n += 1) await w.enqueue(noop(n), { deadline: clock.now() + 1_000 }).accepted()
      await w.enqueue(noop(9)).accepted()
      await clock.advance(5_000)
      w.start()
      await clock.advance(100)
      const [group, ...others] = await ops.failures()
      expect(group).toMatchObject({ type: 'noop', dead: 2, retrying: 0, sample: { error: 'deadline exceeded' } })
      expect(others).toEqual([])
      const { fingerprint } = group!
      expect((await ops.list({ fingerprint })).items.map(({ ending }) => ending)).toEqual(['expired', 'expired'])

      const done = ops.redrive({ fingerprint }, { who: 'ana', why: 'still wanted' })
      await clock.advance(1_000)
      expect(await done).toMatchObject({ total: 2, done: 2, state: 'done' })
      await clock.advance(1_000)
      expect(await ops.failures()).toEqual([])
      expect(await ops.counts()).toMatchObject([{ counts: { completed: 3 } }])
    })

    it('says how many items each worker holds', async () => {
      const { w, clock, ops, calls } = scene(open)
      await w.enqueueMany([hang(1), hang(2)])
      w.start()
      await clock.advance(20_000)
      calls.length = 0
      const workers = await ops.workers()
      expect(workers).toMatchObject([{ isAlive: true, holds: 2 }])
      expect(calls.toSorted()).toEqual(['claim', 'list', 'workers'])
    })

    it('tells the timeline of an item that was tried again, and who paused its type since when', async () => {
      const { w, clock, ops } = scene(open)
      const { id } = await w.enqueue(flaky(null)).accepted()
      w.start()
      await clock.advance(100)
      const report = await ops.item(id)
      expect(report?.timeline.map(({ what }) => what)).toEqual(['enqueued', 'started', 'failed', 'retried', 'waits'])
      expect(report?.timeline[2]?.text).toMatch(
        /^Attempt 1 failed after .* \(retryable, rule default\): Error: not yet$/,
      )

      await w.pause({ type: 'flaky' }, 'the bank is closed')
      await clock.advance(30_000)
      const [reason] = await ops.explain(id)
      expect(reason.code).toBe('paused')
      expect(reason.text).toMatch(
        /^The type "flaky" is paused: .+ paused it at 2026-01-01 .*, 30 s ago \(the bank is closed\)\.$/,
      )
    })

    it('names the person and the bulk action in the timeline of each changed item', async () => {
      const { w, clock, ops } = scene(open)
      const ids = await Promise.all([1, 2, 3, 4, 5].map(async (n) => (await w.enqueue(poison(n)).accepted()).id))
      w.start()
      await clock.advance(1_000)
      const ada = { who: 'ada', why: 'mended', pageSize: 2 }

      const first = await ops.redrive({ type: 'poison' }, ada)
      await clock.advance(60_000)
      expect(first).toMatchObject({ total: 5, done: 5 })
      for (const id of ids) {
        const { timeline = [] } = (await ops.item(id)) ?? {}
        expect(timeline.map(({ what }) => what)).toEqual([
          'enqueued',
          'started',
          'failed',
          'died',
          'redriven',
          'started',
          'failed',
          'died',
        ])
        expect(timeline[4]?.text).toBe(`Redriven by ada in bulk (action ${first.id}): mended.`)
      }

      // Another one, and then one of them by itself: each time it is the right one that is named.
      const second = await ops.redrive({ type: 'poison' }, { who: 'bob' })
      await clock.advance(60_000)
      await ops.redrive(ids[2]!, { who: 'cyd', why: 'once more' })
      await clock.advance(60_000)
      const redriven = async (id: string) =>
        (await ops.item(id))?.timeline.filter(({ what }) => what === 'redriven').map(({ text }) => text)
      const told = [
        `Redriven by ada in bulk (action ${first.id}): mended.`,
        `Redriven by bob in bulk (action ${second.id}).`,
      ]
      expect(await redriven(ids[0]!)).toEqual(told)
      expect(await redriven(ids[2]!)).toEqual([...told, 'Redriven by cyd: once more.'])
    })

    it('says who cancelled an item or ran it now, in bulk or singly', async () => {
      const { w, clock, ops } = scene(open)
      const running = (await w.enqueue(hang(1)).accepted()).id
      const late = (await w.enqueue(noop(1), { delay: 600_000 }).accepted()).id
      const later = (await w.enqueue(noop(2), { delay: 600_000 }).accepted()).id
      const retrying = (await w.enqueue(flaky(null)).accepted()).id
      w.start()
      await clock.advance(1_000)

      const hastened = await ops.runNow({ state: 'retrying' }, { who: 'ada', why: 'no time' })
      await ops.runNow(later, { who: 'bob' })
      const cancelled = await ops.cancel({ type: 'noop' }, { who: 'cyd', why: 'shut' })
      const stopped = await ops.cancel({ type: 'hang' }, { who: 'dan' })

      const told = async (id: string, word: string) =>
        (await ops.item(id))?.timeline.filter(({ what }) => what === word).map(({ text }) => text)
      expect(await told(retrying, 'hastened')).toEqual([
        `ada in bulk (action ${hastened.id}) made it ready to run now: no time.`,
      ])
      expect(await told(later, 'hastened')).toEqual(['bob made it ready to run now.'])
      expect(await told(late, 'cancelled')).toEqual([`It was cancelled by cyd in bulk (action ${cancelled.id}): shut.`])
      expect((await told(running, 'cancelled'))?.join()).toContain(`dan in bulk (action ${stopped.id})`)
    })

    it('previews a failure by the policy that live workers report', async () => {
      const { w, clock, ops } = scene(open)
      expect((await ops.preview('flaky', new Error('x'))).policyFrom).toBe('default')
      w.start()
      await clock.advance(100)
      const told = await ops.preview('flaky', { message: 'busy', status: 503 })
      expect(told).toMatchObject({
        policyFrom: 'worker',
        text: 'retryable (rule http-503): tried 3 times in all, again after 20 s, then after 30 s, then dead-lettered as exhausted',
      })
      expect(await ops.workers()).toMatchObject([{ settings: { leaseMs: 30_000 } }])
    })

    it('says how far the clock of each worker is ahead of the backend', async () => {
      const { backend, w, clock, ops } = scene(open)
      const wrong: Clock = {
        now: () => clock.now() + 240_000,
        monotonic: () => clock.monotonic(),
        after: (ms, run) => clock.after(ms, run),
        sleep: (ms, signal) => clock.sleep(ms, signal),
      }
      const ahead = createWork({ backend, clock: wrong, work: [hang], autoStart: false, stopDrain: 0 })
      onTestFinished(async () => {
        const stopped = ahead.stop()
        await clock.advance(1_000)
        await stopped
      })
      await w.enqueueMany([hang(1)])
      w.start()
      ahead.start()
      // Idle ones tell of themselves every 15 s, busy ones with their heartbeats.
      await clock.advance(40_000)
      const leads = (await ops.workers()).map(({ settings }) => settings?.clock?.aheadMs)
      expect(leads.toSorted((a = 0, b = 0) => a - b)).toEqual([0, 240_000])
    })

    it('shows schedules with their next fires', async () => {
      const { w, clock, ops } = scene(open)
      w.schedule({ name: 'close', cron: '0 3 * * *', tz: 'Europe/Berlin', run: () => undefined })
      w.schedule({ name: 'own', next: (now) => now + 3_600_000, run: () => undefined })
      w.start()
      await clock.advance(3_000)
      const [own, close] = await ops.schedules(3)
      expect(own).toMatchObject({ name: 'own', spec: 'next()', fires: [own?.nextAt], changes: [] })
      expect(close).toMatchObject({ name: 'close', timeZone: 'Europe/Berlin' })
      expect(close?.fires.map((at) => new Date(at).toISOString())).toEqual([
        '2026-01-01T02:00:00.000Z',
        '2026-01-02T02:00:00.000Z',
        '2026-01-03T02:00:00.000Z',
      ])
      // Until the last of so many fires the clocks go forward and back.
      const [, far] = await ops.schedules(365)
      expect(far?.changes.map(({ byMs }) => byMs)).toEqual([3_600_000, -3_600_000])
    })
  })
}
