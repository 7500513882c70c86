import type { ScheduleConfig, Work } from '../../src/index.js'
import type { SimulatedProcess } from '../../src/testing/simulation/process.js'
import { WORLD_STARTS_AT } from '../../src/testing/simulation/process-clock.js'
import type { World } from '../../src/testing/simulation/world.js'

const MINUTE = 60_000

/** A schedule by its rule. `everyMs`: how far apart its occurrences are, where none of them may be missing. */
export type Rule = Omit<ScheduleConfig, 'run'> & { readonly everyMs?: number }

export interface FleetSchedules {
  readonly of: (process: SimulatedProcess) => readonly ScheduleConfig[]
  /** Resolves when all of them have come past the last occurrence that counts. */
  readonly past: () => Promise<void>
  readonly check: () => Promise<void>
}

interface FleetScheduleOptions {
  readonly isNative: boolean
  readonly rules: readonly Rule[]
  /** What falls due until here is fired; later occurrences are left alone, so that the world can come to rest. */
  readonly lastAt: number
  readonly work: (name: string, at: number) => Work
  /** Some calls of `run` take long. */
  readonly runsLong: boolean
}

/** Every process has these schedules. Every occurrence fires once; where all are caught up with, none is missing. */
export function fleetSchedules(world: World, o: FleetScheduleOptions): FleetSchedules {
  const { isNative, rules, lastAt, work, runsLong } = o
  /** Who was asked for which occurrence. */
  const asked = new Map<string, number[]>()
  const early: string[] = []
  const firesOf = async (name: string) => {
    const fires = isNative ? (world.history.fires.get(name) ?? []) : await existing(world, name, asked.get(name) ?? [])
    return fires.filter((at) => at <= lastAt).toSorted((a, b) => a - b)
  }
  return {
    of: (process) =>
      rules.map(({ everyMs: _, ...config }) => ({
        ...config,
        run: async ({ name, at }) => {
          asked.set(name, [...(asked.get(name) ?? []), at])
          if (world.clock.now() < at - 3_000) early.push(`${name} at ${at - world.clock.now()} ms before`)
          if (runsLong && process.random() < 0.2) await process.clock.sleep(Math.floor(process.random() * 20_000))
          return at <= lastAt ? work(name, at) : undefined
        },
      })),
    past: async () => {
      for (const { name } of rules)
        while (((await world.schedule(name))?.nextAt ?? 0) <= lastAt) await world.clock.sleep(1_000)
    },
    check: async () => {
      world.expect(early.length === 0, `nothing fires before its time: ${early.join(', ')}`)
      for (const { name, cron, everyMs } of rules) {
        const fires = await firesOf(name)
        if (cron !== undefined)
          world.expect(
            fires.every((at) => at % MINUTE === 0),
            `${name} fires at its times only`,
          )
        if (everyMs === undefined) continue
        world.expect(fires.length > 0 && fires[0]! <= WORLD_STARTS_AT + 3 * MINUTE, `${name} begins in time`)
        const all = Array.from({ length: (lastAt - fires[0]!) / everyMs + 1 }, (_, n) => fires[0]! + n * everyMs)
        const missing = all.filter((at) => !fires.includes(at))
        const told = missing.map((at) => new Date(at).toISOString()).join(', ')
        world.expect(missing.length === 0, `no occurrence of ${name} is missing: ${told}`)
      }
    },
  }
}

/** On plain ports nobody sees the commits: an occurrence that was fired has an item. */
async function existing(world: World, name: string, asked: readonly number[]): Promise<number[]> {
  const all = [...new Set(asked)]
  const views = await Promise.all(all.map((at) => world.item(`${name}@${new Date(at).toISOString()}`)))
  return all.filter((_, n) => views[n] !== undefined)
}
