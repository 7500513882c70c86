import { describe, expect, it } from 'vitest'
import { defineWork, priorityDoer, type WorkContext } from '../../src/index.js'
import { SimulationError } from '../../src/testing/simulation/errors.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import type { SimulatedProcess } from '../../src/testing/simulation/process.js'
import type { Scenario } from '../../src/testing/simulation/scenario.js'
import { simulate } from '../../src/testing/simulation/simulate.js'
import type { SimulatedWorld } from '../../src/testing/simulation/world.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

/** One quiet seed of a scenario. */
function quietly(setup: (world: SimulatedWorld) => Scenario, options: Partial<SimulationOptions> = {}) {
  return simulate({ seed: 1, faults: 'none', troubleMs: 0, processes: 1, ...options, setup })
}

async function failureOf(simulation: Promise<unknown>): Promise<SimulationError> {
  const failure = await simulation.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(failure).toBeInstanceOf(SimulationError)
  return failure as SimulationError
}

describe('a simulated world without faults', () => {
  it('runs what is enqueued, in virtual time only', async () => {
    const began = performance.now()
    let tookMs = 0
    const report = await quietly((world) => ({
      work: (process) => [
        defineWork('nap', async (_: null, ctx) => {
          await process.clock.sleep(6 * 3_600_000)
          return ctx.result('slept')
        }),
      ],
      run: async () => {
        const process = world.processes[0]!
        const startedMs = world.clock.monotonic()
        expect(await process.system.enqueue(world.work('nap', null)).result()).toBe('slept')
        tookMs = world.clock.monotonic() - startedMs
      },
    }))

    expect(report).toMatchObject({ seeds: 1, items: 1, runs: 1, crashes: 0 })
    expect(tookMs).toBeGreaterThanOrEqual(6 * 3_600_000)
    expect(tookMs).toBeLessThan(6 * 3_600_000 + 1_000)
    expect(performance.now() - began).toBeLessThan(3_600_000)
  })

  it('gives every queue of a type its stand-in, the same for all processes', async () => {
    const elsewhere = { push() {}, pop: () => [], heartbeat() {}, ack() {}, fail() {} }
    const bulk = defineWork('bulk', (_: null, ctx) => ctx.result('done'), { queue: elsewhere })
    await quietly(
      (world) => ({
        work: [bulk],
        run: async () => {
          const id = await world.enqueue(bulk(null))
          await world.clock.sleep(2_000)
          world.expect((await world.item(id))?.queue === 'queue1', 'it waits in the stand-in')
        },
      }),
      { processes: 3 },
    )
  })

  it('lets a schedule of a week pass in moments', async () => {
    const week = 7 * 86_400_000
    const report = await quietly((world) => ({
      work: [noop],
      system: { pollInterval: 60_000 },
      run: async () => {
        await world.enqueue('noop', null, { delay: week })
        await world.clock.sleep(week)
      },
    }))

    expect(report.virtualMs).toBeGreaterThanOrEqual(week)
    expect(report.runs).toBe(1)
  })
})

describe('a process', () => {
  it('gets neither replies nor timers once it has crashed, and another one takes its place', async () => {
    const lived: string[] = []
    await quietly((world) => ({
      work: (process) => [
        defineWork('fatal', async (_: null, ctx) => {
          lived.push(`${process.name} runs`)
          if (lived.length > 1) return ctx.void()
          process.clock.after(10, () => lived.push('its timer fires'))
          process
            .call('outside', () => 1)
            .then(
              () => lived.push('its call returns'),
              () => undefined,
            )
          return process.crash()
        }),
      ],
      system: { visibility: 5_000 },
      run: async () => {
        await world.enqueue('fatal', null)
      },
    }))

    expect(lived).toEqual(['p1 runs', 'p1.2 runs'])
  })

  it('that stands still past its lease has its outcome refused when it goes on', async () => {
    const ran: string[] = []
    const report = await quietly(
      (world) => ({
        work: (process) => [
          defineWork('long', async (_: null, ctx) => {
            ran.push(process.name)
            if (ran.length === 1) process.pause(60_000)
            await process.clock.sleep(1_000)
            return ctx.result(process.name)
          }),
        ],
        system: { visibility: 5_000 },
        run: async () => {
          const id = await world.enqueue('long', null)
          await world.clock.sleep(90_000)
          world.expect((await world.item(id))?.result === JSON.stringify(ran[1]), 'the second run counts')
        },
      }),
      { processes: 2 },
    )

    expect(ran).toHaveLength(2)
    expect(ran[0]).not.toBe(ran[1])
    expect(report.runs).toBe(2)
  })

  it('that stood still past its leases starts nothing of what had waited for its turn', async () => {
    // The simulation itself looks at every start: a handler starts only under a lease that holds.
    const report = await simulate({
      seeds: 30,
      faults: 'none',
      troubleMs: 0,
      processes: 2,
      setup: (world) => ({
        work: (process) => {
          const doer = priorityDoer({ max: 1, buffer: 4, clock: process.clock })
          const turn = async (_: null, ctx: WorkContext) => {
            await process.clock.sleep(1_400)
            return ctx.void()
          }
          return [defineWork('turn', turn, { doer })]
        },
        system: { visibility: 3_000 },
        run: async () => {
          for (let n = 0; n < 6; n += 1) await world.enqueue('turn', null)
          for (const process of world.processes) {
            process.pause(10_000)
            await world.clock.sleep(30_000)
          }
        },
      }),
    })

    expect(report.runs).toBeGreaterThan(report.items)
  })

  it('has its own clock, off by no more than it may be', async () => {
    const skews: number[] = []
    await simulate({
      seeds: 20,
      troubleMs: 100,
      faults: { clockSkewMs: 300_000 },
      setup: (world) => ({
        work: (process) => {
          skews.push(process.clock.now() - world.clock.now())
          return [noop]
        },
        run: () => undefined,
      }),
    })

    expect(Math.max(...skews)).toBeGreaterThan(100_000)
    expect(Math.min(...skews)).toBeLessThan(-100_000)
    expect(Math.max(...skews.map(Math.abs))).toBeLessThanOrEqual(300_000)
  })

  it('meets every kind of fault on its way to the outside', async () => {
    const outcomes = { answered: 0, happened: 0, lost: 0 }
    await simulate({
      seeds: 30,
      faults: { lostRequests: 0.2, lostReplies: 0.2, crashesPerMinute: 0, pausesPerMinute: 0, restartsPerMinute: 0 },
      setup: (world) => ({
        work: [noop],
        run: async () => {
          const process = world.processes[0] as SimulatedProcess
          for (let n = 0; n < 20; n += 1) {
            let happened = false
            const answered = await process
              .call('bank', () => {
                happened = true
              })
              .then(
                () => true,
                () => false,
              )
            outcomes[answered ? 'answered' : happened ? 'happened' : 'lost'] += 1
          }
        },
      }),
    })

    expect(outcomes.answered).toBeGreaterThan(300)
    expect(outcomes.happened).toBeGreaterThan(10)
    expect(outcomes.lost).toBeGreaterThan(10)
  })
})

describe('a simulation that finds something', () => {
  it('tells of a promise of the user that does not hold', async () => {
    const { message, promise } = await failureOf(
      quietly((world) => ({
        work: [noop],
        run: async () => {
          await world.enqueue('noop', null)
        },
        check: () => world.expect(false, 'pigs fly'),
      })),
    )

    expect(promise).toBe('pigs fly')
    expect(message).toMatch(/^Seed 1: "pigs fly" does not hold/)
  })

  it('tells of an error in the scenario as it is', async () => {
    const failure = await failureOf(
      quietly(() => ({
        work: [noop],
        run: () => {
          throw new Error('the producer is broken')
        },
      })),
    )

    expect(failure.message).toContain('the producer is broken')
    expect((failure.cause as Error).message).toBe('the producer is broken')
  })

  it('tells what is stuck, and who holds it', async () => {
    const { message } = await failureOf(
      quietly(
        (world) => ({
          work: [defineWork('hang', () => new Promise<never>(() => undefined))],
          run: async () => {
            await world.enqueue('hang', null)
          },
        }),
        { restWithinMs: 60_000 },
      ),
    )

    expect(message).toMatch(/"nothing is stuck that could move" does not hold: .*hang i\d+ \(running, held by/)
  })

  it('tells of a spin instead of spinning', async () => {
    const { promise } = await failureOf(
      quietly(
        (world) => ({
          work: [noop],
          run: async () => {
            for (;;) await world.clock.sleep(0)
          },
        }),
        { restWithinMs: 60_000 },
      ),
    )

    expect(promise).toBe('nothing spins')
  })
})

describe('options that make no sense', () => {
  const setup = () => ({ work: [noop], run: () => undefined })
  it.each<[string, unknown, RegExp]>([
    ['an unknown one', { setup, seads: 3 }, /"seads" is not an option of simulate. Did you mean "seeds"/],
    ['no setup', {}, /simulate.setup is required/],
    ['a negative number of seeds', { setup, seeds: 0 }, /simulate.seeds must be an integer >= 1/],
    ['seed and seeds', { setup, seed: 1, seeds: 2 }, /simulate.seed must be given without seeds/],
    ['seeds and minutes', { setup, seeds: 1, minutes: 2 }, /simulate.minutes must be left out/],
    ['a chance above one', { setup, faults: { lostReplies: 2 } }, /simulate.faults.lostReplies must be/],
    ['an unknown fault', { setup, faults: { lostReply: 0 } }, /Did you mean "lostReplies"/],
    ['an unknown ground', { setup, ground: 'wet' }, /simulate.ground must be 'native' or 'plain' or 'minimal'/],
  ])('are refused: %s', (_, options, message) => {
    expect(() => simulate(options as SimulationOptions)).toThrow(message)
  })

  it('are refused: a doer that several processes would share', async () => {
    const narrow = defineWork('narrow', (_: null, ctx) => ctx.void(), { doer: priorityDoer({ max: 1 }) })
    const { cause } = await failureOf(quietly(() => ({ work: [narrow], run: () => undefined })))

    expect(cause).toHaveProperty('code', 'BAD_OPTION')
    expect((cause as Error).message).toMatch(/work must be a function when there is a doer in it/)
  })
})

describe('two simulations at once', () => {
  it('do not disturb each other', async () => {
    const once = (seed: number) => {
      const seen: string[] = []
      return simulate({
        seed,
        onSeed: ({ fingerprint }) => seen.push(fingerprint),
        setup: (world) => ({
          work: [noop],
          run: async () => {
            for (let n = 0; n < 5; n += 1) await world.enqueue('noop', null)
          },
        }),
      }).then(() => seen)
    }
    const [first, second] = await Promise.all([once(1), once(2)])

    expect(await once(1)).toEqual(first)
    expect(await once(2)).toEqual(second)
  })
})
