import { describe, expect, it } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { scheduledWork } from './schedules.js'

// Without `compareAndSet` or `incrementOnce`, too: an occurrence is enqueued under one id until it is there, whichever process fires it.
describe('a fleet that schedules, under every kind of trouble', () => {
  it.each([
    ['native', 20],
    ['plain', 40],
    ['minimal', 40],
  ] as const)('fires every occurrence once, and misses none, on %s ground', async (ground, seeds) => {
    const report = await simulate(scheduledWork({ ground, seeds }))

    expect(report.seeds).toBe(seeds)
  })
})
