import { priorityDoer, type WorkHandle, type WorkInstanceOptions } from '../../src/index.js'
import { Chance } from '../../src/testing/simulation/chance.js'
import type { Ground } from '../../src/testing/simulation/far-backend.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import type { Scenario } from '../../src/testing/simulation/scenario.js'
import type { SimulatedWorld } from '../../src/testing/simulation/world.js'
import { reckonAppends, reckonGroups, reckonResults, reckonTimes } from './reckoning.js'
import { type Input, type Stage, TYPES, workTypes } from './types.js'

/** How long work goes on arriving. */
const ARRIVALS_MS = 45_000

/**
 * Random work of every kind, decided by the seed: it succeeds, fails, waits, hangs, kills its process, queues more, adds to
 * its group, has deadlines, delays and priorities; some of it is awaited. The simulation checks its own promises, and this
 * reckons up results and group values.
 */
export function randomWork(options: Omit<SimulationOptions, 'setup'> = {}): SimulationOptions {
  const { ground = 'native' } = options
  const isNative = ground === 'native'
  // Plain ports have no time of their own: every process goes by its own clock, and a second of difference is tolerated.
  const faults = isNative ? options.faults : { clockSkewMs: 400, ...(options.faults === 'none' ? {} : options.faults) }
  return {
    ...options,
    ...(faults === undefined ? {} : { faults }),
    setup: (world) => scenarioOf(world, ground),
  }
}

function scenarioOf(world: SimulatedWorld, ground: Ground): Scenario {
  const isNative = ground === 'native'
  const chance = new Chance(`${world.seed}/scenario`)
  const leaseMs = chance.pick([3_000, 6_000, 15_000])
  const isBounded = chance.flip(0.3)
  const stage: Stage = {
    seed: world.seed,
    leaseMs,
    isSteady: !isNative,
    isTroubled: () => world.isTroubled,
    said: new Map(),
    roots: new Map(),
  }
  return {
    work: (process) => workTypes(process, stage),
    system: (process) => ({
      visibility: leaseMs,
      retry: { attempts: 4, base: 200, max: 5_000 },
      ...(isBounded ? { doer: priorityDoer({ max: 3, clock: process.clock }) } : {}),
    }),
    run: async () => {
      const arrivals = chance.between(4, 16)
      await Promise.all(Array.from({ length: arrivals }, (_, n) => arrive(world, stage, chance, `${n}`, isNative)))
    },
    check: async () => {
      if (ground === 'plain') await reckonAppends(world, stage)
      if (!isNative) return
      await reckonGroups(world, stage)
      await reckonResults(world, stage)
      await reckonTimes(world, stage)
    },
  }
}

/** One root: by a producer that insists, or by one that takes its chance and waits for what comes of it. */
async function arrive(
  world: SimulatedWorld,
  stage: Stage,
  chance: Chance,
  key: string,
  isNative: boolean,
): Promise<void> {
  const type = chance.pick(TYPES)
  const input: Input = { key }
  const options = optionsOf(chance, isNative)
  const insists = chance.flip(0.6)
  const waitMs = chance.pick([0, 0, 1, 500, 10_000])
  const waits = chance.pick(['result', 'group', 'both', 'nobody'])
  await world.clock.sleep(chance.between(0, ARRIVALS_MS))
  const work = world.work(type, input)
  stage.roots.set(work.id, { offeredAt: world.clock.now(), options })
  if (insists) {
    await world.enqueue(work, options)
    return
  }
  const process = world.processes[0]
  if (process === undefined) return
  const handle: WorkHandle = process.system.enqueue(work, options)
  const waiting = async () => {
    if (waitMs > 0) await process.clock.sleep(waitMs)
    const ignored = () => undefined // What it is told is written down by the simulation.
    if (waits === 'result' || waits === 'both') handle.result().catch(ignored)
    if (waits === 'group' || waits === 'both') handle.group().catch(ignored)
  }
  // Not awaited: its process may die before it gets to wait.
  void waiting()
}

function optionsOf(chance: Chance, isNative: boolean): WorkInstanceOptions {
  return {
    ...(chance.flip(0.2) ? { delay: chance.between(1, 20_000) } : {}),
    ...(chance.flip(0.2) ? { priority: chance.between(-2, 2) } : {}),
    ...(chance.flip(0.15) ? { timeout: chance.between(1_000, 60_000) } : {}),
    // On plain ports it lives in its process only, until it has failed once: there it may be lost, and the docs say so.
    ...(isNative && chance.flip(0.2) ? { skipQueue: true } : {}),
    ...(chance.flip(0.1) ? { tags: ['tagged'] } : {}),
  }
}
