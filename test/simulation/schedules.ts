import { defineWork } from '../../src/index.js'
import { Chance } from '../../src/testing/simulation/chance.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import { WORLD_STARTS_AT } from '../../src/testing/simulation/process-clock.js'
import type { Scenario } from '../../src/testing/simulation/scenario.js'
import type { World } from '../../src/testing/simulation/world.js'
import { fleetSchedules, type Rule } from './fleet-schedules.js'

const MINUTE = 60_000

const RULES: readonly Rule[] = [
  { name: 'all', cron: '* * * * *', tz: 'UTC', catchUp: 'all', everyMs: MINUTE },
  { name: 'spread', cron: '*/2 * * * *', tz: 'UTC', catchUp: 'all', jitter: 40_000, everyMs: 2 * MINUTE },
  { name: 'skip', cron: '* * * * *', tz: 'UTC' },
  { name: 'one', cron: '* * * * *', tz: 'UTC', catchUp: 'one' },
  { name: 'next', next: (now) => now + 20_000 },
]

/**
 * A fleet that schedules: by cron, with and without catching up, with jitter, and by a function. Whatever happens to its
 * processes and clocks, every occurrence fires once; where all are caught up with, none is missing.
 */
export function scheduledWork(options: Omit<SimulationOptions, 'setup'> = {}): SimulationOptions {
  const { ground = 'native' } = options
  // On plain ports every process goes by its own clock.
  const faults = ground === 'native' ? {} : { clockSkewMs: 400 }
  const given = options.faults === 'none' ? {} : options.faults
  return {
    ...options,
    faults: { ...faults, ...given },
    setup: (world) => scenarioOf(world as World, ground === 'native'),
  }
}

function scenarioOf(world: World, isNative: boolean): Scenario {
  const chance = new Chance(`${world.seed}/schedules`)
  const job = defineWork('job', (_: { readonly at: number }, ctx) => ctx.void())
  const { of, past, check } = fleetSchedules(world, {
    isNative,
    rules: RULES,
    lastAt: WORLD_STARTS_AT + 4 * MINUTE,
    work: (_, at) => job({ at }),
    runsLong: chance.flip(0.3),
  })
  return {
    work: [job],
    system: { visibility: 6_000, pollInterval: 10_000, retry: { attempts: 20, base: 200, max: 2_000 } },
    schedules: of,
    run: past,
    check,
  }
}
