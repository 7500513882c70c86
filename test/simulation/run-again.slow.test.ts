import { describe, expect, it } from 'vitest'
import { defineBatchWork, PoisonError } from '../../src/index.js'
import { SimulationError } from '../../src/testing/simulation/errors.js'
import type { SeedReport, SimulationOptions } from '../../src/testing/simulation/options.js'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { charging, NAIVE_HANDLERS } from './naive-handlers.js'

/** Where a test of a user might begin. */
const STARTS = Array.from({ length: 12 }, (_, n) => 1 + n * 10)

async function finds(options: SimulationOptions): Promise<boolean> {
  try {
    await simulate(options)
    return false
  } catch (error) {
    if (error instanceof SimulationError && error.promise === 'no order is charged twice') return true
    throw error
  }
}

describe('ten seeds, wherever they begin, find a handler that is not idempotent', () => {
  it.each(Object.entries(NAIVE_HANDLERS))('that makes its effect %s', async (_, naive) => {
    const missed: number[] = []
    for (const firstSeed of STARTS) {
      if (!(await finds(charging(naive, 10, { seeds: 10, firstSeed })))) missed.push(firstSeed)
    }

    expect(missed).toEqual([])
  })

  it('even where one item is all there is', async () => {
    expect(await finds(charging(NAIVE_HANDLERS['without any await']!, 1, { seeds: 10 }))).toBe(true)
  })
})

describe('crashes aimed at runs', () => {
  const before = NAIVE_HANDLERS['before an await']!

  it('come no more where no process crashes', async () => {
    const faults = { crashesPerMinute: 0, restartsPerMinute: 0, pausesPerMinute: 0, slowCalls: 0, lostReplies: 0 }

    expect(await finds(charging(before, 10, { seeds: 10, faults }))).toBe(false)
  })

  it('hit no item so often that it is dead-lettered for it', async () => {
    const endings = new Set<string | undefined>()
    await simulate({
      seeds: 30,
      faults: { crashesPerMinute: 60, crashesInRuns: 1, clockSkewMs: 0 },
      setup: (world) => {
        const ids: string[] = []
        return {
          work: (process) => before(process, () => undefined),
          run: async () => {
            for (let n = 0; n < 3; n += 1) ids.push(await world.enqueue('charge', { id: `${n}` }))
          },
          check: async () => {
            for (const id of ids) endings.add((await world.item(id))?.ending)
          },
        }
      },
    })

    expect([...endings]).toEqual(['completed'])
  })
})

describe('the items that ran more than once', () => {
  it('are counted and named by the report, which is a line to print', async () => {
    const seen: SeedReport[] = []
    const options = charging(NAIVE_HANDLERS['before an await']!, 10, { seeds: 10, onSeed: (seed) => seen.push(seed) })
    const { setup } = options
    const report = await simulate({ ...options, setup: (world) => ({ ...setup(world), check: () => undefined }) })

    expect(report.ranTwice).toBeGreaterThan(10)
    expect(report.ranTwice).toBe(seen.reduce((sum, { ranTwice }) => sum + ranTwice, 0))
    expect(report.ranTwiceItems).toHaveLength(10)
    expect(report.ranTwiceItems[0]).toMatchObject({ type: 'charge', id: expect.stringMatching(/^i\d+$/), runs: 2 })
    expect(`${report}`).toMatch(
      /^10 seeds, \d+ crashes, \d+ runs of 100 items; \d+ items ran more than once: charge i\d+ of seed \d+ \(\d runs\), .*, …$/,
    )
    expect(Object.keys(report)).not.toContain('toString')
  })

  it('are named where a seed fails', async () => {
    const failure = await simulate(charging(NAIVE_HANDLERS['before an await']!, 10, { seeds: 10 })).catch(
      (error: unknown) => error as SimulationError,
    )

    expect(failure).toBeInstanceOf(SimulationError)
    const { repeated, message } = failure as SimulationError
    expect(repeated.ranTwice).toBeGreaterThan(0)
    expect(message).toMatch(/^Until then \d+ items? ran more than once: charge i\d+ of seed \d+ \(2 runs\)/m)
  })
})

describe('batched work in a simulated fleet', () => {
  it('keeps its promises, and is run again item by item where the whole batch failed', async () => {
    const report = await simulate({
      seeds: 20,
      setup: (world) => ({
        work: (process) => [
          defineBatchWork('index', {
            size: 4,
            maxWait: 20,
            run: async (docs: readonly string[]) => {
              await process.clock.sleep(5)
              if (docs.includes('doc 3')) throw new PoisonError('doc 3 is unreadable')
              return docs
            },
          }),
        ],
        run: async () => {
          for (let n = 0; n < 8; n += 1) await world.enqueue('index', `doc ${n}`)
        },
      }),
    })

    expect(report.items).toBe(160)
    expect(report.ranTwice).toBeGreaterThan(20)
  })
})
