import { describe, expect, it } from 'vitest'
import { defineWork } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())
const DAY = 86_400_000

describe.each(GROUNDS)('a system that stops right after it was given work, on %s', (ground) => {
  it('has written all of it, one by one and many together', async () => {
    const { w, until, size, errors } = world(ground, { work: [noop], autoStart: false, maxUnsent: 100 })
    for (let n = 0; n < 30; n += 1) void w.enqueue(noop(null), { delay: DAY })
    const many = w.enqueueMany(
      Array.from({ length: 300 }, () => noop(null)),
      { delay: DAY },
    )
    let isWritten = false
    void many.then(() => {
      isWritten = true
    })
    const wasWritten = await until(w.stop().then(() => isWritten))

    expect(wasWritten).toBe(true)
    expect(await size()).toBe(330)
    expect(errors).toEqual([])
  })

  it('has ended what skips the queue, or given it back', async () => {
    let running = 0
    const direct = defineWork('direct', async (_: null, ctx) => {
      running += 1
      await clock.sleep(100)
      running -= 1
      return ctx.void()
    })
    const { w, clock, until, errors } = world(ground, { work: [direct], autoStart: false })
    const handles = Array.from({ length: 5 }, () => w.enqueue(direct(null), { skipQueue: true }))
    await until(w.stop())

    expect(running).toBe(0)
    expect(w.active()).toEqual([])
    for (const handle of handles) expect(await handle.accepted()).toMatchObject({ kind: 'created' })
    expect(errors).toEqual([])
  })
})
