import { describe, expect, it } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { randomWork } from './scenario.js'

describe('a fleet on a native ledger, under every kind of trouble', () => {
  it('keeps its promises', async () => {
    const report = await simulate(randomWork({ seeds: 300 }))

    expect(report.seeds).toBe(300)
  })

  // A process that stood still between settling and its answer; one that outlasted its own time; late work that was cancelled.
  it.each([703755, 701134, 800793, 3004246, 975356035, 975528402, 977779517])(
    'keeps them under seed %i, which broke one once',
    async (seed) => {
      // Their histories are older than crashes that are aimed at runs.
      await simulate(randomWork({ seed, faults: { crashesInRuns: 0 } }))
    },
  )
})
