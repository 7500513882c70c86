import { describe, expect, it } from 'vitest'
import { Runs } from '../../bench/lib/runs.mjs'

describe('the runs of items', () => {
  it('are complete when there were as many as expected', async () => {
    const runs = new Runs()
    runs.expect(2)
    const reached = runs.reached(1_000)
    runs.ran(0)
    runs.ran(5_000)

    await expect(reached).resolves.toBeUndefined()
    expect(runs.secondRuns).toBe(0)
  })

  it('show an item that ran twice', () => {
    const runs = new Runs()
    for (const n of [0, 3_000, 3_000]) runs.ran(n)

    expect(runs.secondRuns).toBe(1)
  })

  it('are given up as lost when nothing runs any more', async () => {
    const runs = new Runs()
    runs.expect(3)
    runs.ran(0)

    await expect(runs.reached(5)).rejects.toThrow('2 of 3 items were lost: nothing ran for 5 ms')
  })
})
