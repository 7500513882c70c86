import { describe, expect, it } from 'vitest'
import { defineWork, WorkDelayError, type WorkEvent } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

const labels = (events: readonly WorkEvent[]) =>
  events.map((event) => (event.kind === 'group-done' ? event.kind : `${event.kind} ${event.type}#${event.attempt}`))

describe.each(GROUNDS)('events on %s ports', (ground) => {
  it('come in the order in which things happened, however soon the next run begins', async () => {
    const bad = defineWork(
      'bad',
      () => {
        throw new Error('x')
      },
      { retry: { attempts: 3, base: 0 } },
    )
    const { w, until, events } = world(ground, { work: [bad] })
    await expect(until(w.enqueue(bad({})).result())).rejects.toThrow()
    await until(w.enqueue(bad({})))
    const first = events[0]?.kind === 'queued' ? events[0].id : ''
    const own = events.filter((event) => event.kind !== 'group-done' && event.id === first)

    expect(labels(own)).toEqual([
      'queued bad#1',
      'started bad#1',
      'failed bad#1',
      'started bad#2',
      'failed bad#2',
      'started bad#3',
      'failed bad#3',
    ])
  })

  it('report a deferral before the run that follows it', async () => {
    let calls = 0
    const wait = defineWork('wait', (_: null, ctx) => {
      calls += 1
      if (calls === 1) throw new WorkDelayError({ delay: 0 })
      return ctx.void()
    })
    const { w, until, events } = world(ground, { work: [wait] })
    await until(w.enqueue(wait(null)))

    expect(labels(events)).toEqual([
      'queued wait#1',
      'started wait#1',
      'deferred wait#1',
      'started wait#1',
      'succeeded wait#1',
      'group-done',
    ])
  })

  it('report that a child was queued before its parent has succeeded and before it starts', async () => {
    const leaf = defineWork('leaf', (_: null, ctx) => ctx.void())
    const root = defineWork('root', (_: null, ctx) => ctx.queue(leaf(null)))
    const { w, until, events } = world(ground, { work: [leaf, root] })
    await until(w.enqueue(root(null)))

    expect(labels(events)).toEqual([
      'queued root#1',
      'started root#1',
      'queued leaf#1',
      'succeeded root#1',
      'started leaf#1',
      'succeeded leaf#1',
      'group-done',
    ])
    expect(w.metrics.get('work.queued', { type: 'leaf' })?.value).toBe(1)
  })

  it('reach the listener of a type that was never registered', async () => {
    const own: string[] = []
    const late = defineWork('late', (_: null, ctx) => ctx.void(), { onEvent: (event) => own.push(event.kind) })
    const { w, until } = world(ground, { onEvent: () => undefined })
    await until(w.enqueue(late(null)))

    expect(own).toEqual(['queued', 'started', 'succeeded'])
  })

  it('are not disturbed by listeners that fail later', async () => {
    const late = async () => {
      throw new Error('listener')
    }
    const calm = defineWork('calm', (_: null, ctx) => ctx.result('ok'), { onEvent: late })
    const { w, until } = world(ground, { work: [calm], onEvent: late, onError: late })

    expect(await until(w.enqueue(calm(null)).result())).toBe('ok')
  })
})
