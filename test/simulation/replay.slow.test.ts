import { describe, expect, it } from 'vitest'
import { defineWork } from '../../src/index.js'
import { SimulationError } from '../../src/testing/simulation/errors.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import type { Ground } from '../../src/testing/simulation/remote-backend.js'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { randomWork } from './scenario.js'

async function fingerprints(options: SimulationOptions): Promise<string[]> {
  const seen: string[] = []
  await simulate({ ...options, onSeed: ({ fingerprint }) => seen.push(fingerprint) })
  return seen
}

describe('a seed', () => {
  it.each<Ground>(['native', 'plain'])('has one history only, on %s ground', async (ground) => {
    const options = randomWork({ ground, seeds: ground === 'native' ? 40 : 4 })
    const once = await fingerprints(options)
    const again = await fingerprints(options)

    expect(again).toEqual(once)
    expect(new Set(once).size).toBe(once.length)
  })

  it('fails the same way whenever it is replayed', async () => {
    const failing = async (options: Partial<SimulationOptions>) => {
      const failure = await simulate({ ...impatient(), ...options }).then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(failure).toBeInstanceOf(SimulationError)
      return failure as SimulationError
    }
    const found = await failing({ seeds: 50 })
    const replayed = await failing({ seed: found.seed })

    expect(replayed.message).toBe(found.message)
    expect(replayed.history).toEqual(found.history)
    expect(found.message).toContain(`Seed ${found.seed}: "nothing runs twice" does not hold`)
    expect(found.history.some((line) => line.includes('■ '))).toBe(true)
    expect(found.facts).toMatchObject({ seed: found.seed, promise: 'nothing runs twice' })
  })
})

/** A promise that Millrace does not make. */
function impatient(): SimulationOptions {
  return {
    setup: (world) => {
      const ran: string[] = []
      return {
        work: (process) => [
          defineWork('once', async (_: null, ctx) => {
            ran.push(ctx.id)
            await process.clock.sleep(3_000)
            return ctx.void()
          }),
        ],
        run: async () => {
          for (let n = 0; n < 10; n += 1) await world.enqueue('once', null)
        },
        check: () => world.expect(new Set(ran).size === ran.length, 'nothing runs twice'),
      }
    },
  }
}
