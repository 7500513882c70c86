import { describe, expect, it } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { randomWork } from './scenario.js'

describe('a fleet on a native ledger, under every kind of trouble', () => {
  it('keeps its promises', async () => {
    const report = await simulate(randomWork({ seeds: 400 }))

    expect(report.seeds).toBe(400)
  }, 60_000)
})
