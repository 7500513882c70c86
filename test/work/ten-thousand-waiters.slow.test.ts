import { describe, expect, it } from 'vitest'
import { defineWork } from '../../src/index.js'
import { gate, world } from './support.js'

describe('ten thousand waiters', () => {
  // S122 W10
  it('cost one subscription and few reads', async () => {
    const hold = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await hold.promise
      return ctx.void()
    })
    let gets = 0
    let subscriptions = 0
    const { w, clock } = world('wrapped', { work: [slow], autoStart: false }, (ports) => ({
      queue: ports.queue,
      pubsub: {
        ...ports.pubsub,
        subscribe: (listener) => {
          subscriptions += 1
          return ports.pubsub.subscribe(listener)
        },
      },
      store: {
        ...ports.store,
        get: (key) => {
          gets += 1
          return ports.store.get(key)
        },
      },
    }))
    for (let i = 0; i < 10_000; i += 1)
      w.enqueue(slow(null))
        .result()
        .catch(() => undefined)
    await clock.advance(30_000)
    const before = gets
    await clock.advance(21_000) // Four rounds of the slowest poll.

    expect(subscriptions).toBe(1)
    expect((gets - before) / 21).toBeLessThan(2_000)
  })
})
