import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { BackendTime } from '../../src/work/worker/backend-time.js'

/** A machine whose clock is five minutes behind the backend's. */
function machine() {
  const clock = new FakeClock()
  const backendNow = () => clock.now() + 300_000
  return { clock, backendNow, time: new BackendTime(clock) }
}

describe("the backend's time", () => {
  it('is the time of the machine until the first reply', () => {
    const { clock, time } = machine()

    expect(time.isKnown).toBe(false)
    expect(time.now()).toBe(clock.now())
  })

  it('goes on from a quick reply, whatever becomes of the clock of the machine', async () => {
    const { clock, backendNow, time } = machine()
    time.learn(backendNow(), clock.monotonic())
    await clock.advance(60_000)
    const truth = backendNow()
    clock.jump(-3_600_000)

    expect(time.now()).toBe(truth)
  })

  it('follows the clock of the backend when it is set, also where the reply was slower than the one before', async () => {
    const { clock, backendNow, time } = machine()
    time.learn(backendNow(), clock.monotonic())
    const askedMs = clock.monotonic()
    await clock.advance(40)
    time.learn(backendNow() + 3_600_000, askedMs)

    expect(Math.abs(time.now() - (backendNow() + 3_600_000))).toBeLessThanOrEqual(20)
  })

  it('is not put off by a reply that took long', async () => {
    const { clock, backendNow, time } = machine()
    time.learn(backendNow(), clock.monotonic())
    const askedMs = clock.monotonic()
    const toldAt = backendNow()
    await clock.advance(40_000)
    time.learn(toldAt, askedMs)

    expect(time.now()).toBe(backendNow())
  })

  it('is taken from a slow reply when there is no better one, and lies in its middle', async () => {
    const { clock, backendNow, time } = machine()
    const askedMs = clock.monotonic()
    await clock.advance(10_000)
    const toldAt = backendNow()
    await clock.advance(10_000)
    time.learn(toldAt, askedMs)

    expect(time.now()).toBe(backendNow())
  })

  it('forgets a quick reply when clocks may have run apart since', async () => {
    const { clock, backendNow, time } = machine()
    time.learn(backendNow() - 5_000, clock.monotonic())
    await clock.advance(1_000_000)
    const askedMs = clock.monotonic()
    await clock.advance(500)
    time.learn(backendNow() - 250, askedMs)

    expect(time.now()).toBe(backendNow())
  })
})
