import { Chance } from '../../src/testing/simulation/chance.js'
import type { SimulatedWorld } from '../../src/testing/simulation/world.js'
import type { Pausable } from '../../src/work/control/pause.js'
import { type Stage, TYPES } from './types.js'

/** How long people interfere. */
const INTERFERENCE_MS = 45_000
/** How often, and how many times, somebody looks whether anything is still paused. */
const LOOK_EVERY_MS = 20_000
const LOOKS = 15

/** People who interfere, decided by the seed: they cancel what waits and what runs, and pause types and queues for a while. */
export async function disturb(world: SimulatedWorld, stage: Stage): Promise<void> {
  const chance = new Chance(`${world.seed}/people`)
  const pauses = chance.flip(0.5) ? chance.between(1, 2) : 0
  const cancels = chance.flip(0.7) ? chance.between(1, 6) : 0
  if (pauses + cancels === 0) return
  await Promise.all([
    ...Array.from({ length: pauses }, () => pauseForAWhile(world, chance)),
    ...Array.from({ length: cancels }, () => cancelSomething(world, stage, chance)),
  ])
  if (pauses > 0) void tidyUp(world)
}

/** An order to pause may be under way for long, and arrive after the resume: somebody looks after it, in peace too. */
async function tidyUp(world: SimulatedWorld): Promise<void> {
  for (let look = 0; look < LOOKS; look += 1) {
    await world.clock.sleep(LOOK_EVERY_MS)
    for (const what of PAUSABLE) await world.ask((system) => system.resume(what))
  }
}

const PAUSABLE: readonly Pausable[] = [...TYPES.map((type) => ({ type })), { queue: 'default' }]

async function pauseForAWhile(world: SimulatedWorld, chance: Chance): Promise<void> {
  const what = chance.pick(PAUSABLE)!
  const [startMs, forMs] = [chance.between(0, INTERFERENCE_MS), chance.between(1, 20_000)]
  await world.clock.sleep(startMs)
  await world.ask((system) => system.pause(what, 'a person wants it'))
  await world.clock.sleep(forMs)
  await world.ask((system) => system.resume(what))
}

/** A root or a child, of those that are known by then; most of them have ended, some wait, some run. */
async function cancelSomething(world: SimulatedWorld, { roots }: Stage, chance: Chance): Promise<void> {
  await world.clock.sleep(chance.between(0, INTERFERENCE_MS))
  const runs = world.runs()
  const going = runs.filter(({ endedMs }) => endedMs === undefined)
  const known = chance.flip(0.5) && going.length > 0 ? going.map(({ id }) => id) : [...roots.keys()]
  const id = chance.pick(known)
  if (id !== undefined) await world.ask((system) => system.cancel(id, 'a person wants it'))
}
