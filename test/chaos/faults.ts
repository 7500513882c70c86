import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/core/time/clock.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import type { PrivateServer } from '../servers/private-server.js'
import type { CuttingProxy } from './cutting-proxy.js'
import type { Fleet, Member } from './fleet.js'
import { machineNow } from './machine-time.mjs'
import { type ChaosOptions, FAULTS, type Fault } from './options.js'
import type { SmallDisk } from './small-disk.js'
import type { Timeline } from './timeline.js'

const HOUR_MS = 3_600_000

/** What faults are done to. */
export interface Scene {
  readonly options: ChaosOptions
  readonly fleet: Fleet
  readonly timeline: Timeline
  readonly server: PrivateServer | undefined
  /** A disk that can be full, and the database on it. */
  readonly disk: { readonly full: SmallDisk; readonly database: string } | undefined
}

export interface Done {
  /** How often each kind of fault was done. */
  readonly counts: Readonly<Record<Fault, number>>
  /** When the server was killed, by the wall clock. */
  readonly serverKilledAt: readonly number[]
}

/** Does one fault of a kind, and is back when it is over. False: there was nothing to do it to. */
type Do = (random: Random) => Promise<boolean>

/** Does every kind of fault now and then, each by itself, for as long as the options say. */
export async function doFaults(scene: Scene): Promise<Done> {
  const { options, fleet, timeline, server, disk } = scene
  const { leaseMs } = options
  const serverKilledAt: number[] = []
  /** Records what is done to a process from now on, or to all of them, when it is over. */
  const during = async (kind: 'stop' | 'cut' | 'restart' | 'disk', who: string | undefined, act: () => unknown) => {
    const from = machineNow()
    await act()
    timeline.add({ ...(who !== undefined && { who }), kind, from, to: machineNow() })
  }
  let restarts = 0
  let offsetMs = 0

  const doing: Record<Fault, Do> = {
    async kills(random) {
      const victim = pick(fleet.members('worker', 'producer'), random)
      if (victim !== undefined) await fleet.killAndReplace(victim)
      return victim !== undefined
    },
    // They are ordered like other work: by the waiter.
    crashers: async () => false,
    async restarts() {
      if (server === undefined) return false
      // Redis is always killed; PostgreSQL the first time, and it ends in order the others.
      const by = restarts === 0 || server.kind === 'redis' ? 'SIGKILL' : 'SIGTERM'
      restarts += 1
      options.say?.(`restarting the server (${by})`)
      await during('restart', undefined, () => server.restart(by))
      // Taken afterwards: what was accepted while it was going down counts as accepted before.
      if (by === 'SIGKILL') serverKilledAt.push(Date.now())
      return true
    },
    async sigstop(random) {
      const victim = pick(random() < 0.8 ? fleet.members('worker') : fleet.members('waiter', 'producer'), random)
      if (victim === undefined) return false
      await during('stop', victim.name, async () => {
        fleet.stop(victim)
        await sleep((1.1 + random()) * leaseMs)
        fleet.goOn(victim)
      })
      return true
    },
    async cuts(random) {
      const victim = pick(proxied(fleet), random)
      if (victim === undefined) return false
      await during('cut', victim.name, async () => {
        if (random() < 0.25) {
          victim.proxy.fallSilent()
          await sleep((0.3 + random()) * leaseMs)
          victim.proxy.speak()
        } else victim.proxy.cut()
      })
      return true
    },
    async replies(random) {
      const victim = pick(proxied(fleet), random)
      if (victim === undefined) return false
      victim.proxy.swallowNextReply(() => {
        const now = machineNow()
        timeline.add({ who: victim.name, kind: 'reply', from: now, to: now })
      })
      return true
    },
    // The locker does them: its transactions follow each other.
    locks: async () => false,
    async clock(random) {
      const others = [-HOUR_MS, 0, HOUR_MS].filter((one) => one !== offsetMs)
      offsetMs = others[Math.floor(random() * others.length)]!
      fleet.setClocks(offsetMs)
      return true
    },
    async disk(random) {
      if (disk === undefined) return false
      await during('disk', undefined, async () => {
        disk.full.fill(disk.database)
        await sleep(500 + 1_500 * random())
        disk.full.empty()
      })
      return true
    },
  }

  const endAt = machineNow() + options.seconds * 1_000
  const counts = Object.fromEntries(
    await Promise.all(
      faultNames().map(async (fault, i) => {
        const everyMs = options.everyMs[fault]
        const random = seededRandom(options.seed + i)
        const isOn = roundsOf(options, seededRandom(options.seed + faultNames().length + i))
        const doIt: Do = async (chance) => isOn() && doing[fault](chance)
        return [fault, everyMs === undefined ? 0 : await again(doIt, everyMs, random, endAt)]
      }),
    ),
  ) as Record<Fault, number>
  await sleep(Math.max(0, endAt - machineNow()))
  // What became due in the hour that was taken back would be due in an hour.
  if (options.everyMs.clock !== undefined) fleet.setClocks(HOUR_MS)
  return { counts, serverKilledAt }
}

function faultNames(): Fault[] {
  return Object.keys(FAULTS) as Fault[]
}

/** Whether a kind of fault has its turn now. */
function roundsOf({ roundMs, seconds }: ChaosOptions, random: Random): () => boolean {
  if (roundMs === undefined) return () => true
  const startedAt = machineNow()
  const rounds = Array.from({ length: Math.ceil((seconds * 1_000) / roundMs) + 1 }, () => random() < 0.5)
  return () => rounds[Math.floor((machineNow() - startedAt) / roundMs)] ?? false
}

/** About every so often, until the end. How often it was done. */
async function again(doIt: Do, everyMs: number, random: Random, endAt: number): Promise<number> {
  let count = 0
  for (;;) {
    const pauseMs = (0.5 + random()) * everyMs
    if (machineNow() + pauseMs > endAt) return count
    await sleep(pauseMs)
    if (await doIt(random)) count += 1
  }
}

function proxied(fleet: Fleet): (Member & { readonly proxy: CuttingProxy })[] {
  const members = fleet.members('worker', 'producer', 'waiter')
  return members.filter((member): member is Member & { readonly proxy: CuttingProxy } => member.proxy !== undefined)
}

function pick<T>(all: readonly T[], random: Random): T | undefined {
  return all[Math.floor(random() * all.length)]
}
