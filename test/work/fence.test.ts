import { describe, expect, it } from 'vitest'
import { defineWork, WorkDelayError } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

describe.each(GROUNDS)('ctx.fence on %s ports', (ground) => {
  it('rises with every lease of the item: after a failure, a deferral, and a run whose time was up', async () => {
    const fences: number[] = []
    const type = defineWork(
      'fenced',
      async (_: null, ctx) => {
        fences.push(ctx.fence)
        if (fences.length === 1) throw new Error('once')
        if (fences.length === 2) throw new WorkDelayError({ delay: 5 })
        if (fences.length === 3) return new Promise<never>(() => undefined)
        return ctx.result(ctx.fence)
      },
      { retry: { attempts: 5, base: 1, jitter: 0 }, runTimeout: 300 },
    )
    const { w, until } = world(ground, { work: [type] })
    const last = await until(w.enqueue(type(null)).result())

    expect(fences).toHaveLength(4)
    expect(last).toBe(fences[3])
    for (const fence of fences) expect(Number.isSafeInteger(fence)).toBe(true)
    expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b))
  })
})
