import type { Ops } from 'millrace/ops'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { timeoutsOf, withTimeouts } from '../../src/cli/connect/timeout.js'

const never = () => new Promise<never>(() => {})

describe('how long the command line waits', () => {
  it('for an answer: until the limit, and not longer', async () => {
    const clock = new FakeClock()
    const ops = withTimeouts({ overview: never } as unknown as Ops, 30_000, 'postgres://h/d', clock)
    let error: unknown
    ops.overview().catch((reason: unknown) => {
      error = reason
    })
    await clock.advance(29_999)
    expect(error).toBeUndefined()
    await clock.advance(1)
    expect(error).toMatchObject({ code: 'NO_ANSWER', message: expect.stringContaining('within 30 s') })
  })

  it('for an action: as long as it takes', async () => {
    const clock = new FakeClock()
    const act = () => clock.sleep(3_600_000).then(() => 'done')
    const ops = withTimeouts({ redrive: act } as unknown as Ops, 30_000, 'postgres://h/d', clock)
    const acting = ops.redrive('a', { who: 'ada' })
    await clock.advance(3_600_000)
    expect(await acting).toBe('done')
  })

  it('is what --timeout says, for the first answer and for all others', () => {
    expect(timeoutsOf(undefined)).toEqual({ firstMs: 15_000, answerMs: 30_000 })
    expect(timeoutsOf(2_000)).toEqual({ firstMs: 2_000, answerMs: 2_000 })
  })
})
