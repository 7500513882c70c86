import { describe, expect, it } from 'vitest'
import { RunCount } from './run-count.js'

describe('the count of runs', () => {
  it('sees a second run of an item, and no other', () => {
    const runs = new RunCount()
    for (const n of [0, 5_000, 1, 0, 0]) runs.start(n)

    expect(runs).toMatchObject({ started: 5, secondRuns: 2 })
  })

  it('knows what has ended, and how many ran at the same time', () => {
    const runs = new RunCount()
    runs.start(0)
    runs.start(1)
    runs.end(1)
    runs.start(5_000)

    expect(runs).toMatchObject({ ended: 1, mostAtOnce: 2 })
    expect([0, 1, 5_000, 90_000].map((n) => runs.hasEnded(n))).toEqual([false, true, false, false])
  })

  it('resolves when so many have begun', async () => {
    const runs = new RunCount()
    let isReached = false
    const reached = runs.mark(2).then(() => {
      isReached = true
    })
    runs.start(0)
    await Promise.resolve()
    expect(isReached).toBe(false)
    runs.start(1)
    await reached
  })
})
