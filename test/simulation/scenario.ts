import { dependency, priorityDoer, type Work, type WorkHandle, type WorkInstanceOptions } from '../../src/index.js'
import { Chance } from '../../src/testing/simulation/chance.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import { WORLD_STARTS_AT } from '../../src/testing/simulation/process-clock.js'
import type { Ground } from '../../src/testing/simulation/remote-backend.js'
import type { Scenario } from '../../src/testing/simulation/scenario.js'
import type { SimulatedWorld, World } from '../../src/testing/simulation/world.js'
import type { StateCondition } from '../../src/work/define/work.js'
import { disturb } from './disturbances.js'
import { type FleetSchedules, fleetSchedules, type Rule } from './fleet-schedules.js'
import { reckonAppends, reckonGroups, reckonLinks, reckonResults, reckonTimes } from './reckoning.js'
import { type Input, type Stage, TYPES, workTypes } from './types.js'

/** How long work goes on arriving. */
const ARRIVALS_MS = 45_000
const MINUTE = 60_000
/** The share of seeds whose fleet schedules, too: they take longer than the others. */
const SCHEDULING = 0.2

/**
 * Random work of every kind, decided by the seed: it succeeds, fails, waits, hangs, kills its process, queues more, adds to
 * its group, has deadlines, delays and priorities; some of it is awaited, some cancelled, some paused, some scheduled. The
 * simulation checks its own promises, and this reckons up results and group values.
 */
export function randomWork(options: Omit<SimulationOptions, 'setup'> = {}): SimulationOptions {
  const { ground = 'native' } = options
  const isNative = ground === 'native'
  // Plain ports have no time of their own: every process goes by its own clock, and a second of difference is tolerated.
  const faults = isNative ? options.faults : { clockSkewMs: 400, ...(options.faults === 'none' ? {} : options.faults) }
  return {
    ...options,
    ...(faults === undefined ? {} : { faults }),
    setup: (world) => scenarioOf(world as World, ground),
  }
}

function scenarioOf(world: World, ground: Ground): Scenario {
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
    links: [],
    offered: [],
    roots: new Map(),
  }
  const schedules = schedulesOf(world, isNative)
  return {
    work: (process) => workTypes(process, stage),
    ...(schedules === undefined ? {} : { schedules: schedules.of }),
    system: (process) => ({
      visibility: leaseMs,
      retry: { attempts: 4, base: 200, max: 5_000 },
      ...(isBounded ? { doer: priorityDoer({ max: 3, clock: process.clock }) } : {}),
    }),
    run: async () => {
      const arrivals = chance.between(4, 16)
      await Promise.all([
        disturb(world, stage),
        schedules?.past(),
        ...Array.from({ length: arrivals }, (_, n) => arrive(world, stage, chance, `${n}`, isNative)),
      ])
    },
    check: async () => {
      await schedules?.check()
      if (ground === 'plain') await reckonAppends(world, stage)
      if (ground !== 'minimal') await reckonLinks(world, stage)
      if (!isNative) return
      await reckonGroups(world, stage)
      await reckonResults(world, stage)
      await reckonTimes(world, stage)
    },
  }
}

/** Some fleets schedule what else is only enqueued: by cron and by a function, with catching up and without. */
function schedulesOf(world: World, isNative: boolean): FleetSchedules | undefined {
  const chance = new Chance(`${world.seed}/schedules`)
  if (!chance.flip(SCHEDULING)) return undefined
  const rules: readonly Rule[] = [
    { name: 'all', cron: '* * * * *', tz: 'UTC', catchUp: 'all', everyMs: MINUTE },
    chance.pick<Rule>([
      { name: 'skip', cron: '* * * * *', tz: 'UTC', jitter: 20_000 },
      { name: 'next', next: (now) => now + 15_000 },
    ])!,
  ]
  const type = chance.pick(TYPES)!
  return fleetSchedules(world, {
    isNative,
    rules,
    lastAt: WORLD_STARTS_AT + 3 * MINUTE,
    work: (name, at) => world.work(type, { key: `${name}-${at}` } satisfies Input),
    runsLong: chance.flip(0.3),
  })
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
  const isGate = chance.flip(0.2)
  // On plain ports a gate that was not accepted is not replaced by another one.
  const insists = chance.flip(0.6) && (isNative || !isGate)
  const options = isGate ? {} : optionsOf(chance, isNative)
  const waitMs = chance.pick([0, 0, 1, 500, 10_000])
  const waits = chance.pick(['result', 'group', 'both', 'nobody'])
  await world.clock.sleep(chance.between(0, ARRIVALS_MS))
  const own = world.work(type, input)
  const work = isGate ? gateOver(stage, chance, own) : own
  if (!isGate) stage.offered.push(work.id)
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

/** Waits for some of the roots there were, and for one that never is: so its time is limited. */
function gateOver({ offered }: Stage, chance: Chance, queue: Work): Work {
  const on = offered.filter(() => chance.flip(0.3))
  const config =
    chance.pick<StateCondition>(['all-success', 'all-done', { count: 1 }, { count: 2, of: 'success' }]) ?? 'all-done'
  const isHopeless = chance.flip(0.2)
  return dependency({
    on: isHopeless ? [...on, 'never'] : on,
    queue,
    config,
    poll: chance.pick([10, 1_000]),
    timeout: chance.between(1_000, 120_000),
  })
}

function optionsOf(chance: Chance, isNative: boolean): WorkInstanceOptions {
  return {
    ...(chance.flip(0.2) ? { delay: chance.between(1, 20_000) } : {}),
    ...(chance.flip(0.2) ? { priority: chance.between(-2, 2) } : {}),
    ...(chance.flip(0.15) ? { timeout: chance.between(1_000, 60_000) } : {}),
    // On plain ports it lives in its process only, until it has failed once: there it may be lost, and the docs say so.
    ...(isNative && chance.flip(0.2) ? { skipQueue: true } : {}),
    ...(chance.flip(0.1) ? { tags: ['tagged'] } : {}),
    ...(chance.flip(0.15) ? { runTimeout: chance.between(50, 10_000) } : {}),
    ...(chance.flip(0.1) ? { strictDeadline: true } : {}),
  }
}
