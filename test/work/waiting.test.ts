import { describe, expect, it } from 'vitest'
import { defineWork } from '../../src/index.js'
import type { Ports } from '../../src/ports/ports.js'
import { GROUNDS, gate, PLAIN_GROUNDS, world } from './support.js'

const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))

describe.each(GROUNDS)('waiting on %s ports', (ground) => {
  it('for a result counts as waiting for its group, whenever the wait began', async () => {
    const unhandled: string[] = []
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.result('ok')
    })
    const direct = defineWork('direct', (_: null, ctx) => ctx.result('ok'), { skipQueue: true })
    const { w, clock, until } = world(ground, {
      work: [slow, direct],
      unhandledWorkGroup: ({ groupId }) => {
        unhandled.push(groupId)
      },
    })
    const handle = w.enqueue(slow(null))
    await until(handle.accepted())
    await clock.advance(10)
    const late = handle.result()
    await clock.advance(10)
    hold.open()
    expect(await until(late)).toBe('ok')
    expect(await until(w.enqueue(direct(null)).result())).toBe('ok')
    await clock.advance(500)

    expect(unhandled).toEqual([])
  })

  it('goes on after a stop and a start, though another process did the work', async () => {
    const here = world(ground, { work: [add] })
    await here.until(here.w.stop())
    const result = here.w.enqueue(add(1)).result()
    await here.clock.advance(10)
    await here.until(here.w.stop())
    here.another({ work: [add] })
    await here.clock.advance(100)
    here.w.start()

    expect(await here.until(result)).toBe(2)
  })

  it('times out although the item is never accepted', async () => {
    const hang = new Promise<never>(() => undefined)
    const never = (ports: Ports): Ports => ({ ...ports, store: { ...ports.store, set: () => hang } })
    const direct = defineWork('direct', (_: null, ctx) => ctx.void(), { skipQueue: true })
    const { w, until } = world(ground, { work: [direct] }, never)

    await expect(until(w.enqueue(direct(null)).result({ timeout: 100 }), 1_000)).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
    })
  })

  it('polls after a quarter of a second although others have waited for long', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.void()
    })
    // Nothing arrives on the channel, so only polling helps.
    const deaf = (ports: Ports): Ports => ({
      ...ports,
      pubsub: { publish: () => undefined, subscribe: () => () => undefined },
    })
    const { w, another, clock, until } = world(ground, { work: [slow, add], autoStart: false }, deaf)
    another({ work: [slow, add] })
    w.enqueue(slow(null))
      .result()
      .catch(() => undefined)
    await clock.advance(20_000)
    const startAt = clock.now()

    expect(await until(w.enqueue(add(1)).result())).toBe(2)
    expect(clock.now() - startAt).toBeLessThanOrEqual(550)
    hold.open()
    await clock.advance(6_000)
  })
})

describe.each(PLAIN_GROUNDS)('two handles of one work, on %s ports', (ground) => {
  it('fail and succeed independently', async () => {
    let pushes = 0
    const { w, until } = world(ground, { work: [add] }, (ports) => ({
      ...ports,
      queue: {
        ...ports.queue,
        push: (...args) => {
          pushes += 1
          if (pushes === 1) throw new Error('first push')
          return ports.queue.push(...args)
        },
      },
    }))
    const one = add(1)
    const first = w.enqueue(one).result()
    first.catch(() => undefined)
    await expect(first).rejects.toThrow('first push')

    expect(await until(w.enqueue(one).result())).toBe(2)
  })
})
