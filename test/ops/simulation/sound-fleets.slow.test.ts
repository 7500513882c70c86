import { describe, expect, it } from 'vitest'
import { simulate } from '../../../src/testing/simulation/simulate.js'
import type { World } from '../../../src/testing/simulation/world.js'
import { randomWork } from '../../simulation/scenario.js'
import { Onlooker } from './onlooker.js'

const SEEDS = 60

describe('inspecting fleets under every kind of trouble', () => {
  it(`reports nothing false, and finds nothing where nothing is broken (${SEEDS} seeds)`, async () => {
    const said = new Map<string, number>()
    const options = randomWork({ seeds: SEEDS, firstSeed: 1_000 })
    const report = await simulate({
      ...options,
      setup: (given) => {
        const world = given as World
        const scenario = options.setup(world)
        const onlooker = new Onlooker(world)
        return {
          ...scenario,
          run: async () => {
            await Promise.all([scenario.run(), onlooker.looks()])
          },
          check: async () => {
            await scenario.check?.()
            await onlooker.auditFinds(false)
            onlooker.heldTrue()
            for (const [code, count] of onlooker.codes) said.set(code, (said.get(code) ?? 0) + count)
          },
        }
      },
    })

    expect(report.seeds).toBe(SEEDS)
    // All that can be said of a fleet was said, and held against its history.
    for (const code of [
      'completed',
      'dead',
      'running',
      'gate',
      'scheduled',
      'retrying',
      'waiting',
      'paused',
      'lease-lapsed',
    ])
      expect(said.get(code) ?? 0, code).toBeGreaterThan(0)
  }, 600_000)
})
