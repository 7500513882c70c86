import { describe, expect, it } from 'vitest'
import { createWork, defineWork, dependency, memoryBackend, PoisonError, WorkDelayError } from '../../src/index.js'
import { openOps } from '../../src/ops/index.js'
import { actionsInLog } from '../../src/ops/items/action-history.js'
import { timelineOf } from '../../src/ops/items/timeline.js'
import type { ItemView, LogEntry } from '../../src/ports/inspect.js'
import type { Attempt } from '../../src/ports/item.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

const view = (more: Partial<ItemView> & { readonly head?: Partial<ItemView['envelope']> } = {}): ItemView => {
  const { head, ...rest } = more
  const envelope = { id: 'i', type: 't', groupId: 'i', queueAt: 100, startAt: 100, attempt: 1, priority: 0, ...head }
  return { envelope, queue: 'default', status: 'pending', ...rest }
}
const failed = (attempt: number, startedAt: number): Attempt => ({
  attempt,
  startedAt,
  endedAt: startedAt + 10,
  worker: 'w-1',
  class: 'retryable',
  rule: 'default',
  error: 'Error: no',
})
const life = (seen: ItemView, attempts: readonly Attempt[] = [], log: readonly LogEntry[] = []) =>
  timelineOf({ view: seen, attempts, waitsFor: undefined, actions: actionsInLog(log, 'i'), now: 9_000 })
const whats = (moments: readonly { readonly what: string }[]) => moments.map(({ what }) => what)

describe('the timeline of an item', () => {
  it('begins with who enqueued it, and how', () => {
    expect(life(view())[0]).toEqual({ at: 100, what: 'enqueued', text: 'Enqueued on queue "default".' })
    expect(life(view({ head: { parent: 'p', priority: 5 } }))[0]?.text).toBe(
      'Enqueued by p on queue "default" with priority 5.',
    )
    expect(life(view({ head: { parent: 'g', dependents: ['a', 'b'] } }))[0]?.text).toBe(
      'Enqueued by the gate g, which waited for a, b on queue "default".',
    )
    expect(life(view({ head: { startAt: 5_000 } }))[0]?.text).toContain(', to start at 1970-01-01 00:00:05Z')
  })

  it('lists each attempt, its failure and its retry, in order', () => {
    const moments = life(view({ status: 'completed', ending: 'completed', endAt: 500, head: { attempt: 2 } }), [
      failed(1, 200),
      { attempt: 2, startedAt: 400, endedAt: 500, worker: 'w-2' },
    ])
    expect(moments.map(({ at, what }) => [at, what])).toEqual([
      [100, 'enqueued'],
      [200, 'started'],
      [210, 'failed'],
      [210, 'retried'],
      [400, 'started'],
      [500, 'succeeded'],
    ])
    expect(moments[2]?.text).toBe('Attempt 1 failed after 10 ms (retryable, rule default): Error: no')
    expect(moments[3]?.text).toBe('It was retried: attempt 2 started at 1970-01-01 00:00:00.400Z.')
  })

  it('ends with how the item ended, also when the clock of its worker was ahead', () => {
    const moments = life(view({ status: 'completed', ending: 'completed', endAt: 400 }), [
      { attempt: 1, startedAt: 401, endedAt: 402, worker: 'w' },
    ])
    expect(whats(moments)).toEqual(['enqueued', 'started', 'succeeded'])
  })

  it('says when the next attempt comes, and how many runs were cut off', () => {
    const moments = life(view({ head: { attempt: 2 }, dueAt: 20_000, crashes: 2 }), [failed(1, 200)])
    expect(moments.at(-2)).toMatchObject({
      what: 'retried',
      text: 'It is retried as attempt 2 at 1970-01-01 00:00:20Z.',
    })
    expect(moments.at(-1)?.text).toBe('It waits until 1970-01-01 00:00:20Z, after 2 runs that were cut off.')
  })

  it('distinguishes a deferral from a failure', () => {
    const deferred = { attempt: 1, startedAt: 200, endedAt: 210, worker: 'w', rule: 'deferred' }
    expect(whats(life(view({ dueAt: 20_000 }), [deferred]))).toEqual(['enqueued', 'started', 'deferred', 'waits'])
    expect(whats(life(view({ dueAt: 0 }), [deferred, { ...deferred, startedAt: 300, endedAt: 310 }]))).toEqual([
      'enqueued',
      'started',
      'deferred',
      'started',
      'deferred',
      'waits',
    ])
  })

  it('lists redrives: who and why from the log, the last time from the item, earlier ones from the attempts', () => {
    const attempts = [failed(1, 200), failed(1, 400), failed(1, 600)]
    const log = [{ at: 500, who: 'ana', why: 'fixed', what: 'redrive i' }]
    const again = view({ status: 'dead', ending: 'exhausted', class: 'retryable', error: 'Error: no', endAt: 610 })
    const moments = life({ ...again, envelope: { ...again.envelope, redrives: 2, queueAt: 500 } }, attempts, log)
    expect(whats(moments)).toEqual([
      'enqueued',
      'started',
      'failed',
      'died',
      'redriven',
      'started',
      'failed',
      'died',
      'redriven',
      'started',
      'failed',
      'died',
    ])
    expect(moments.filter(({ what }) => what === 'redriven').map(({ at, text }) => [at, text])).toEqual([
      [400, 'Redriven before this; the time is not stored.'],
      [500, 'Redriven by ana: fixed.'],
    ])
    expect(moments[0]).toMatchObject({ at: 200, text: expect.stringContaining('at this time or earlier') })
    expect(moments.at(-1)?.text).toBe('It died: its attempts were used up (retryable): Error: no')
  })

  it('finds the time of the first enqueue in an id of ours, when a redrive has replaced it', () => {
    const id = '0000000000ff-7abc'.replace(/^(.{8})(.{4})-(.*)$/, '$1-$2-$3-8abc-0123456789ab')
    const moments = life(view({ head: { id, redrives: 1, queueAt: 500 } }), [failed(1, 300)])
    expect(moments[0]).toMatchObject({ at: 255, what: 'enqueued' })
  })

  it('says who cancelled it, even before its run is notified', () => {
    const log = [{ at: 300, who: 'ana', why: 'wrong', what: 'cancel i' }]
    const ended = view({ status: 'dead', ending: 'cancelled', error: 'cancelled: wrong', endAt: 320 })
    expect(life(ended, [], log).at(-1)).toEqual({
      at: 320,
      what: 'cancelled',
      text: 'It was cancelled by ana: wrong.',
    })
    const runs = view({ status: 'running', worker: 'w-1', runAt: 200, cancelReason: 'wrong' })
    expect(life(runs, [], log).map(({ what, text }) => [what, text])).toEqual([
      ['enqueued', 'Enqueued on queue "default".'],
      ['started', 'Attempt 1 started on w-1 and is running.'],
      ['cancelled', 'ana asked to cancel it: wrong.'],
    ])
    expect(life({ ...runs, running: true }, [], log)).toEqual(life(runs, [], log))
    expect(life(view({ status: 'running', worker: 'w-1', runAt: 200, running: false })).at(-1)).toEqual({
      at: 9_000,
      what: 'waits',
      text: 'It was taken by w-1, whose last heartbeat did not report it as running.',
    })
  })
})

describe('an item of a real system', () => {
  const fails = defineWork('fails', () => Promise.reject(new PoisonError('never')))
  const later = defineWork('later', () => Promise.reject(new WorkDelayError({ delay: 50_000 })))
  const noop = defineWork('noop', (_: null, ctx) => ctx.void())

  async function scene() {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const w = createWork({ backend, clock, work: [fails, later, noop] })
    const stop = async () => {
      void w.stop()
      await clock.advance(6_000)
    }
    return { clock, backend, w, stop, ops: openOps(backend, { clock }) }
  }

  it('has a timeline of what happened', async () => {
    const { clock, w, ops, stop } = await scene()
    const dead = await w.enqueue(fails(null)).accepted()
    const deferred = await w.enqueue(later(null)).accepted()
    await clock.advance(10)
    const report = await ops.item(dead.id)
    expect(whats(report?.timeline ?? [])).toEqual(['enqueued', 'started', 'failed', 'died'])
    expect(report?.timeline.at(-1)?.text).toBe('It died: a retry could not have helped (poison): PoisonError: never')
    expect(whats((await ops.item(deferred.id))?.timeline ?? [])).toEqual(['enqueued', 'started', 'deferred', 'waits'])
    await stop()
  })

  it('says what it waits for', async () => {
    const { w, ops, stop } = await scene()
    const first = noop(null)
    await w.enqueue(first, { delay: 60_000 }).accepted()
    const { id } = await w.enqueue(dependency({ on: [first, 'absent'], queue: [noop(null)] })).accepted()
    const report = await ops.item(id)
    expect(report?.waitsFor).toEqual([first.id, 'absent'])
    expect(report?.timeline.at(-1)).toMatchObject({ what: 'waits', text: `It waits for ${first.id}, absent.` })
    await stop()
  })

  it('withholds its input when redact fails, whatever it throws', async () => {
    const { w, backend, clock, stop } = await scene()
    const { id } = await w.enqueue(fails({ secret: 's3cret' }), { delay: 1_000 }).accepted()
    const redacted = async (redact: () => string) => (await openOps(backend, { clock, redact }).item(id))?.input
    expect(
      await redacted(() => {
        throw new TypeError('cannot read s3cret')
      }),
    ).toBe('[withheld: redact() threw TypeError]')
    // @ts-expect-error: it must answer synchronously
    expect(await redacted(async () => 's3cret')).toBe('[withheld: redact() returned object instead of a text]')
    await stop()
  })

  it('is shown in the pages of a large group that its children are on', async () => {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const part = defineWork('part', (_: number, ctx) => ctx.void())
    const whole = defineWork('whole', (_: null, ctx) => ctx.queue([first(null), ...many(part, 150)]))
    const first = defineWork('first', (_: null, ctx) => ctx.queue([part(0)]))
    const w = createWork({ backend, clock, work: [whole, first, part] })
    const ops = openOps(backend, { clock })
    const { id } = await w.enqueue(whole(null)).accepted()
    await clock.advance(50)
    expect((await ops.item(id))?.children).toHaveLength(100)
    const inner = (await ops.list({ type: 'first' })).items[0]!
    expect((await ops.item(inner.id))?.children).toHaveLength(1)
    void w.stop()
    await clock.advance(6_000)
  })
})

function many<T>(make: (n: number) => T, count: number): T[] {
  return Array.from({ length: count }, (_, n) => make(n))
}
