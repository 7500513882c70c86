import { describe, expect, it } from 'vitest'
import { Released } from '../../../src/source/loop/released.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'

const IDLE_MS = 1_000

/** A loop that gave one thing back for so long, at time 0, the feed answering immediately. */
async function gaveBack(delayMs: number, answeredAfterMs = 0) {
  const clock = new FakeClock()
  const startAt = clock.now()
  const back = new Released(() => clock.now())
  back.add(delayMs, clock.sleep(answeredAfterMs), IDLE_MS)
  await clock.advance(answeredAfterMs)
  /** In how many ms it polls, when the feed's next due time is so far away from the beginning. */
  const looksAfter = (dueMs?: number) =>
    back.lookAt(dueMs === undefined ? undefined : startAt + dueMs, clock.now() + IDLE_MS) - startAt
  return { clock, back, looksAfter }
}

describe('what this loop gave back', () => {
  it('is polled for a little after it falls due', async () => {
    const { looksAfter } = await gaveBack(100)
    expect(looksAfter(100)).toBe(150)
  })

  it('is polled for by itself where the feed knows no due times', async () => {
    const { looksAfter } = await gaveBack(100)
    expect(looksAfter()).toBe(150)
  })

  it('is found by a due time that the answer made later', async () => {
    const { looksAfter } = await gaveBack(100, 30)
    expect(looksAfter(115)).toBe(180)
  })

  it('is never a whole poll late', async () => {
    const { looksAfter } = await gaveBack(800)
    expect(looksAfter(800)).toBe(900)
  })

  it('is not run into by a poll just before others had their chance', async () => {
    const { looksAfter } = await gaveBack(IDLE_MS)
    expect(looksAfter()).toBe(IDLE_MS + 100)
  })

  it('is forgotten when its time is over', async () => {
    const { clock, looksAfter } = await gaveBack(100)
    await clock.advance(150)
    expect(looksAfter()).toBe(150 + IDLE_MS)
  })
})

describe('what others put there', () => {
  it('is polled for on time, before and long after what was given back', async () => {
    const { looksAfter } = await gaveBack(500)
    expect(looksAfter(100)).toBe(100)
    const far = await gaveBack(5_000)
    expect(far.looksAfter(900)).toBe(900)
  })

  it('is not put off by a poll', async () => {
    const { looksAfter } = await gaveBack(IDLE_MS * 60)
    expect(looksAfter()).toBe(IDLE_MS)
  })
})
