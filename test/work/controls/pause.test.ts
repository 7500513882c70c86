import { describe, expect, it } from 'vitest'
import { defineWork, memoryQueue } from '../../../src/index.js'
import { GROUNDS, gate, world } from '../support.js'
import { isNativeGround } from './tapped.js'

function recording(name: string, ran: string[]) {
  return defineWork(name, (n: number, ctx) => {
    ran.push(`${name}${n}`)
    return ctx.result(n)
  })
}

describe.each(GROUNDS)('a pause on %s ports', (ground) => {
  it('of a type holds its items in every process, and lets the others pass', async () => {
    const ran: string[] = []
    const [slow, quick] = [recording('slow', ran), recording('quick', ran)]
    const { w, until, another, clock } = world(ground, { work: [slow, quick] })
    const other = another({ work: [slow, quick] })
    await until(other.pause({ type: slow }, 'the bank is closed'))
    expect(await until(w.paused())).toEqual({ queues: [], types: ['slow'] })
    const held = [1, 2, 3].map((n) => w.enqueue(slow(n)))
    expect(await until(w.enqueue(quick(1)).result())).toBe(1)
    await clock.advance(500)
    expect(ran).toEqual(['quick1'])

    await until(w.resume({ type: 'slow' }))
    await until(Promise.all(held.map((handle) => handle.result())))
    expect(ran.toSorted()).toEqual(['quick1', 'slow1', 'slow2', 'slow3'])
    // Where nothing can be held, what was put back comes again in no order.
    if (isNativeGround(ground)) expect(ran).toEqual(['quick1', 'slow1', 'slow2', 'slow3'])
    expect(await until(other.paused())).toEqual({ queues: [], types: [] })
  })

  it.runIf(isNativeGround(ground))('of a type with a large backlog delays no other type', async () => {
    const ran: string[] = []
    const [slow, quick] = [recording('slow', ran), recording('quick', ran)]
    const { w, until, clock } = world(ground, { work: [slow, quick], autoStart: false })
    await until(w.pause({ type: slow }))
    await until(w.enqueueMany(Array.from({ length: 6_000 }, (_, n) => slow(n))))
    const result = w.enqueue(quick(1)).result()
    await clock.settle()
    const startedAt = clock.now()
    w.start()

    expect(await until(result)).toBe(1)
    expect(ran).toEqual(['quick1'])
    expect(clock.now() - startedAt).toBeLessThan(1_000)
  })

  it('of a queue holds everything in it, keeps its order, and lets what runs go on', async () => {
    const ran: string[] = []
    const end = gate()
    const begun = gate()
    const long = defineWork('long', async (_: null, ctx) => {
      begun.open()
      await end.promise
      return ctx.result('through')
    })
    const short = recording('short', ran)
    const { w, until, clock } = world(ground, { work: [long, short] })
    const running = w.enqueue(long(null))
    await until(begun.promise)
    await until(w.pause({ queue: 'default' }))
    const held = [1, 2, 3].map((n) => w.enqueue(short(n), { priority: n === 3 ? 5 : 0 }))
    await clock.advance(200)
    end.open()
    expect(await until(running.result())).toBe('through')
    expect(ran).toEqual([])
    expect(await until(w.paused())).toEqual({ queues: ['default'], types: [] })

    await until(w.resume({ queue: 'default' }))
    await until(Promise.all(held.map((handle) => handle.result())))
    if (isNativeGround(ground)) expect(ran).toEqual(['short3', 'short1', 'short2'])
    else expect(ran.toSorted()).toEqual(['short1', 'short2', 'short3'])
  })

  it('spends no attempt, and a paused item can be cancelled', async () => {
    const attempts: number[] = []
    const one = defineWork('one', (_: null, ctx) => {
      attempts.push(ctx.attempt)
      return ctx.void()
    })
    const { w, until, clock } = world(ground, { work: [one] })
    await until(w.pause({ type: one }))
    const [kept, dropped] = [w.enqueue(one(null)), w.enqueue(one(null))]
    const result = expect(dropped.result()).rejects.toThrow('cancelled')
    await clock.advance(100)
    expect(await until(dropped.cancel())).toEqual({ kind: 'cancelled' })
    await until(result)
    await until(w.resume({ type: one }))
    await until(kept.result())

    expect(attempts).toEqual([1])
  })

  it('takes a queue itself, and refuses what is neither', async () => {
    const { w, until, ports } = world(ground, { autoStart: false })
    await until(w.pause({ queue: ports.queue }))
    expect(await until(w.paused())).toEqual({ queues: ['default'], types: [] })
    await until(w.resume({ queue: ports.queue }))

    for (const bad of [
      {},
      { queue: 'a', type: 'b' },
      { queue: '' },
      { type: '' },
      { queue: memoryQueue() },
      { tpye: 'a' },
    ]) {
      await expect(w.pause(bad as never), JSON.stringify(bad)).rejects.toMatchObject({
        code: expect.stringMatching(/OPTION/),
      })
    }
  })
})
