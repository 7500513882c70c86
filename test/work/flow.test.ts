import { describe, expect, it } from 'vitest'
import { defineBatchWork, defineWork, type WorkResult } from '../../src/index.js'
import { isNativeGround } from './controls/tapped.js'
import { counting, NEVER } from './flow-tools.js'
import { GROUNDS, world } from './support.js'

describe.each(GROUNDS)('how much runs at the same time, on %s ports', (ground) => {
  it('is 32 by default', async () => {
    const { seen, during } = counting()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await during(here.clock.sleep(100))
      return ctx.void()
    })
    const here = world(ground, { work: [slow] })
    await here.w.enqueueMany(Array.from({ length: 100 }, () => slow(null)))
    await here.clock.advance(2_000)

    expect(seen).toEqual({ now: 0, most: 32, runs: 100 })
  })

  it('is what `concurrency` says, and of one type what that says', async () => {
    const all = counting()
    const few = counting()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await all.during(here.clock.sleep(100))
      return ctx.void()
    })
    const rare = defineWork(
      'rare',
      async (_: null, ctx) => {
        await all.during(few.during(here.clock.sleep(100)))
        return ctx.void()
      },
      { concurrency: 2 },
    )
    const here = world(ground, { work: [slow, rare], concurrency: 5 })
    await here.w.enqueueMany(Array.from({ length: 20 }, (_, i) => (i < 10 ? rare(null) : slow(null))))
    await here.clock.advance(5_000)

    expect(all.seen).toMatchObject({ most: 5, runs: 20 })
    expect(few.seen).toMatchObject({ most: 2, runs: 10 })
  })

  it.runIf(isNativeGround(ground))(
    'holds no more than it can begin, however many types have their own limit',
    async () => {
      const types = Array.from({ length: 20 }, (_, n) =>
        defineWork(
          `type${n}`,
          async (_: null, ctx) => {
            await clock.sleep(10_000)
            return ctx.void()
          },
          { concurrency: 8 },
        ),
      )
      const { w, clock, until } = world(ground, { work: types, concurrency: 2 })
      await until(w.enqueueMany(types.flatMap((type) => Array.from({ length: 5 }, () => type(null)))))
      await clock.advance(5_000)
      expect(w.active().length).toBeLessThanOrEqual(4)
    },
  )

  it('leaves room for the other types where the items of a slow one come first', async () => {
    const slow = defineWork('slow', () => NEVER, { concurrency: 1 })
    const quick = defineWork('quick', (_: null, ctx) => ctx.result('quick'))
    const { w, until } = world(ground, { work: [slow, quick], stopDrain: 0 })
    await w.enqueueMany(Array.from({ length: 200 }, () => slow(null)))
    const results = until(Promise.all(Array.from({ length: 50 }, () => w.enqueue(quick(null)).result())), 10_000)

    expect(new Set(await results)).toEqual(new Set(['quick']))
  })

  it.each([
    [
      'one by one',
      async (waits: readonly PromiseLike<unknown>[]): Promise<void> => {
        for (const wait of waits) await wait
      },
    ],
    ['together', async (waits: readonly PromiseLike<unknown>[]): Promise<void> => void (await Promise.all(waits))],
  ] as const)('does not count handlers that await other work (%s)', async (_name, all) => {
    const { seen, during } = counting()
    const child = defineWork('child', async (_: null, ctx) => {
      await during(here.clock.sleep(10))
      return ctx.void()
    })
    const parent = defineWork('parent', async (_: null, ctx): Promise<WorkResult> => {
      await all(Array.from({ length: 3 }, () => here.w.enqueue(child(null)).result()))
      await during(here.clock.sleep(10))
      return ctx.void()
    })
    const here = world(ground, { work: [child, parent], concurrency: 2 })
    await here.until(Promise.all(Array.from({ length: 20 }, () => here.w.enqueue(parent(null)).result())))

    expect(seen).toEqual({ now: 0, most: 2, runs: 80 })
  })

  it('counts batches, and leaves room for a whole one', async () => {
    const sizes: number[] = []
    const batched = defineBatchWork('batched', {
      size: 100,
      maxWait: 50,
      run: async (inputs: readonly number[]) => {
        sizes.push(inputs.length)
        await here.clock.sleep(10)
        return inputs
      },
    })
    const here = world(ground, { work: [batched], concurrency: 1 })
    await here.w.enqueueMany(Array.from({ length: 300 }, (_, n) => batched(n)))
    await here.clock.advance(2_000)

    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(300)
    expect(sizes[0]).toBe(100)
  })
})

describe.each(GROUNDS)('a stop, on %s ports', (ground) => {
  it('returns immediately what obeys it after some milliseconds', async () => {
    const obedient = defineWork('obedient', async (_: null, ctx) => {
      await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
      await here.clock.sleep(5)
      throw ctx.signal.reason
    })
    const here = world(ground, { work: [obedient], stopDrain: 100, visibility: 60_000 })
    const handle = here.w.enqueue(obedient(null))
    await here.clock.advance(20)
    await here.until(here.w.stop(), 1_000)

    const [state] = await here.w.states([handle.id])
    expect(state).toMatchObject({ status: 'pending', attempt: 1 })
  })
})
