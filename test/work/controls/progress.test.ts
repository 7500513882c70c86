import { describe, expect, it } from 'vitest'
import { defineWork, type WorkContext } from '../../../src/index.js'
import { GROUNDS, gate, PLAIN_GROUNDS, world } from '../support.js'
import { tapped } from './tapped.js'

function talker() {
  const begun = gate<WorkContext>()
  const end = gate()
  const type = defineWork('talker', async (_: null, ctx) => {
    begun.open(ctx)
    await end.promise
    return ctx.void()
  })
  return { type, begun, end }
}

describe.each(GROUNDS)('progress on %s ports', (ground) => {
  // W25
  it('is reported by the run and read by its handle, in another process', async () => {
    const { type, begun, end } = talker()
    const { w, until, another, clock } = world(ground, { autoStart: false, work: [type] })
    another({ work: [type] })
    const handle = w.enqueue(type(null))
    const { progress } = await until(begun.promise)
    expect(await until(handle.progress())).toBeUndefined()
    progress({ done: 1, of: 10, at: new Date(0) })
    await clock.advance(10)

    expect(await until(handle.progress())).toEqual({ done: 1, of: 10, at: new Date(0) })
    progress({ done: 2 })
    progress({ done: 3 })
    await clock.advance(1_100)
    expect(await until(handle.progress())).toEqual({ done: 3 })
    end.open()
    await until(handle.result())
  })

  it('can be watched until the item has ended', async () => {
    const { type, begun, end } = talker()
    const { w, until, clock } = world(ground, { work: [type] })
    const handle = w.enqueue(type(null))
    const seen: unknown[] = []
    const watched = (async () => {
      for await (const value of handle.watchProgress({ every: 50 })) seen.push(value)
    })()
    const { progress } = await until(begun.promise)
    progress('a tenth')
    await clock.advance(200)
    progress('half')
    await clock.advance(1_200)
    end.open()
    await until(watched)

    expect(seen).toEqual(['a tenth', 'half'])
  })

  it.each([0, -1, Number.NaN, Infinity, '5'])('is not watched every %s ms: that is refused at the call', (every) => {
    const { type } = talker()
    const { w } = world(ground, { work: [type] })
    const handle = w.enqueue(type(null))

    expect(() => handle.watchProgress({ every: every as number })).toThrow('watchProgress.every')
    expect(() => handle.watchProgress({ evry: 5 } as never)).toThrow('Did you mean "every"?')
  })

  it('that is too large, or cannot be encoded, is refused where it is reported', async () => {
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const big = defineWork(
      'big',
      (n: number, ctx) => {
        ctx.progress(n === 0 ? circle : 'x'.repeat(n))
        return ctx.void()
      },
      { retry: { attempts: 1 } },
    )
    const { w, until } = world(ground, { work: [big] })

    await until(w.enqueue(big(1_000)).result())
    await expect(until(w.enqueue(big(1_048_577)).result())).rejects.toThrow('more than 1048576')
    await expect(until(w.enqueue(big(0)).result())).rejects.toThrow('ProgressError')
  })
})

describe.each(PLAIN_GROUNDS)('progress on %s ports', (ground) => {
  it('is stored under progress:<id>', async () => {
    const { type, begun, end } = talker()
    const { w, until, ports, clock } = world(ground, { work: [type] })
    const handle = w.enqueue(type(null))
    ;(await until(begun.promise)).progress(7)
    await clock.advance(10)

    expect(await ports.store.get(`work:progress:${handle.id}`)).toBe('7')
    end.open()
  })
})

describe('the progress of many runs', () => {
  it('is sent together, once a second, however much they report', async () => {
    const extended: string[][] = []
    const ports = tapped((ledger) => ({
      extend: (held, leaseMs, me) => {
        const reported = held.flatMap(({ progress }) => progress ?? [])
        if (reported.length > 0) extended.push(reported)
        return ledger.extend(held, leaseMs, me)
      },
    }))
    const contexts: WorkContext[] = []
    const end = gate()
    const talk = defineWork('talk', async (_: null, ctx) => {
      contexts.push(ctx)
      await end.promise
      return ctx.void()
    })
    const { w, clock } = world('native', { work: [talk] }, ports)
    for (let i = 0; i < 20; i += 1) void w.enqueue(talk(null))
    await clock.advance(10)
    for (let round = 0; round < 50; round += 1) {
      for (const { progress } of contexts) progress(round)
      await clock.advance(20)
    }
    await clock.advance(1_000)
    end.open()

    expect(extended.map(({ length }) => length)).toEqual([20, 20])
    expect(new Set(extended[0])).toEqual(new Set(['0']))
    expect(new Set(extended[1])).toEqual(new Set(['49']))
  })

  it('is not sent for a run that has ended', async () => {
    const late: WorkContext[] = []
    const quick = defineWork('quick', (_: null, ctx) => {
      late.push(ctx)
      return ctx.void()
    })
    const { w, until, clock, errors } = world('native', { work: [quick] })
    const handle = w.enqueue(quick(null))
    await until(handle.result())
    late[0]!.progress('too late')
    await clock.advance(2_000)

    expect(await until(handle.progress())).toBeUndefined()
    expect(errors).toEqual([])
  })
})
