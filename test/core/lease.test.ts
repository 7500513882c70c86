import { describe, expect, it, vi } from 'vitest'
import { keepLease } from '../../src/core/time/lease.js'
import type { MaybePromise } from '../../src/core/time/time.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

function keep(renew: () => MaybePromise<boolean>) {
  const clock = new FakeClock()
  const asked: number[] = []
  const startedAt = clock.monotonic()
  const onLost = vi.fn(() => clock.monotonic() - startedAt)
  const stop = keepLease({
    clock,
    leaseMs: 3_000,
    renew: () => {
      asked.push(clock.monotonic() - startedAt)
      return renew()
    },
    onLost,
  })
  const lostAt = () => onLost.mock.results.map(({ value }) => value)
  return { clock, asked, stop, lostAt }
}

describe('a kept lease', () => {
  it('is renewed every third of its length', async () => {
    const { clock, asked, lostAt } = keep(async () => true)
    await clock.advance(10_000)
    expect(asked).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((s) => s * 1_000))
    expect(lostAt()).toEqual([])
  })

  it('survives failed renewals until it is over, and is then lost once', async () => {
    const { clock, asked, lostAt } = keep(() => {
      throw new Error('unreachable')
    })
    await clock.advance(10_000)
    expect(asked).toEqual([1_000, 2_000])
    expect(lostAt()).toEqual([3_000])
  })

  it('is kept when a renewal succeeds after failed ones', async () => {
    let calls = 0
    const { clock, lostAt } = keep(async () => {
      calls += 1
      if (calls % 2 === 1) throw new Error('unreachable')
      return true
    })
    await clock.advance(60_000)
    expect(lostAt()).toEqual([])
  })

  it('is lost as soon as the renewal says so', async () => {
    const { clock, asked, lostAt } = keep(async () => false)
    await clock.advance(10_000)
    expect(asked).toEqual([1_000])
    expect(lostAt()).toEqual([1_000])
  })

  it('is lost a whole lease after the last renewal was asked for, when all later ones hang', async () => {
    let calls = 0
    const { clock, lostAt } = keep(() => {
      calls += 1
      return calls === 1 ? true : new Promise<boolean>(() => undefined)
    })
    await clock.advance(10_000)
    expect(lostAt()).toEqual([4_000])
  })

  it('counts a slow renewal from the moment it was asked for', async () => {
    let isSlow = true
    const { clock, lostAt } = keep(async () => {
      if (!isSlow) throw new Error('unreachable')
      isSlow = false
      await clock.sleep(1_500)
      return true
    })
    await clock.advance(10_000)
    expect(lostAt()).toEqual([4_000])
  })

  it('is neither renewed nor lost once it was stopped, not even by an answer that was on its way', async () => {
    const { clock, asked, stop, lostAt } = keep(async () => {
      await clock.sleep(500)
      return false
    })
    await clock.advance(1_200)
    stop()
    await clock.advance(10_000)
    expect(asked).toEqual([1_000])
    expect(lostAt()).toEqual([])
  })
})
