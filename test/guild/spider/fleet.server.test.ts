import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WritDoc } from 'millrace/guild/clerk'
import type { RigDoc } from 'millrace/guild/spider'
import { postgresStacks, sqliteStacks } from 'millrace/guild/stacks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { Fleet } from './fleet.js'
import { overlaps, readRuns } from './run-log.js'
import { type SpiderGuild, spiderGuild } from './spider-guild.js'

// Real processes and real kills: time is real here. MILLRACE_GUILD_FLEET=full is 200 writs on four processes, one of which is
// killed every second.
const IS_FULL = process.env['MILLRACE_GUILD_FLEET'] === 'full'
const PROCESSES = IS_FULL ? 4 : 3
const KILL_EVERY_MS = IS_FULL ? 1_000 : 0
/** The short form posts a portion of its writs after each kill, so that there is always something to be interrupted. */
const PORTIONS = IS_FULL ? [200] : [4, 4]
const MAX_KILLS = IS_FULL ? Infinity : 2
/** How long an engine runs. In the short form, long enough to be killed in the middle. */
const ENGINE_MS = IS_FULL ? 20 : 300
/** How long a killed process keeps its engines. Much longer than a busy machine keeps a living one from running. */
const LEASE_MS = IS_FULL ? 6_000 : 3_000
/** Nothing at all has happened for so long: it hangs. How long everything takes depends on the machine, and is not judged. */
const HANGS_MS = 90_000

type Fails = 'first' | 'always'
/** In the short form every second writ has the one kind of engine, every other the other. */
const FORMS: readonly (readonly Fails[])[] = IS_FULL ? [['first'], ['always']] : [['first', 'always']]

let server: Awaited<ReturnType<typeof startPostgres>> | undefined
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-spider-fleet-'))
  server = await startPostgres()
})
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const places = {
  SQLite: (name: string) => ({
    address: join(folder, `${name}.sqlite`),
    work: join(folder, `${name}.work.sqlite`),
  }),
  PostgreSQL: (name: string) => ({ address: `${server?.url}#fleet_${name}`, work: `fleet_${name}_work` }),
}

const forms = FORMS.flatMap((fails) => [
  { name: 'SQLite' as const, fails, kind: fails.join(' or ') },
  { name: 'PostgreSQL' as const, fails, kind: fails.join(' or ') },
])

// The short ones wait for leases most of the time, and do so together; the full ones need the machine for themselves.
describe.each(forms)(
  `${PROCESSES} processes on one $name, killed one after the other, engines that fail $kind`,
  { concurrent: !IS_FULL },
  ({ name, fails }) => {
    it(
      'every writ comes to its end with exactly two rigs, and no engine meets itself',
      async () => {
        const label = fails.join('_')
        const { address, work } = places[name](label)
        const log = join(folder, `${name}-${label}.log`)
        const made = await clientOf(address)
        const wanted = new Map<string, Fails>()
        const postPortion = async (portion: number) => {
          for (let n = 0; n < (PORTIONS[portion] ?? 0); n += 1) {
            const kind = fails[wanted.size % fails.length] ?? 'first'
            const writ: WritDoc = await made.clerk.post({ title: `writ ${wanted.size}`, body: kind })
            wanted.set(writ.id, kind)
          }
        }
        await postPortion(0)
        const startedAt = Date.now()
        const fleet = new Fleet({
          args: [address, work, log, String(ENGINE_MS), String(LEASE_MS)],
          victim: IS_FULL ? 'has run' : 'running',
          log,
          size: PROCESSES,
          killEveryMs: KILL_EVERY_MS,
          maxKills: MAX_KILLS,
          hangsMs: HANGS_MS,
        })
        let kills = 0
        try {
          await fleet.run({
            progress: () => progressOf(made),
            spared: () => holdersOfLapsed(made),
            isOver: async (killed) => {
              const due = PORTIONS.slice(0, killed + 1).reduce((sum, portion) => sum + portion, 0)
              if (due > wanted.size) await postPortion(killed)
              const [rigs = 0, completed = 0, stuck = 0] = await progressOf(made)
              const ends = [...wanted.values()].filter((kind) => kind === 'first').length
              const isDone = rigs === 2 * wanted.size && completed === ends && stuck === wanted.size - ends
              return isDone && (IS_FULL || killed >= MAX_KILLS)
            },
          })
          kills = fleet.killedAt.size
        } finally {
          await fleet.stop()
        }
        const tookMs = Date.now() - startedAt
        for (const [id, kind] of wanted) {
          expect((await made.clerk.show(id)).phase).toBe(kind === 'first' ? 'completed' : 'stuck')
          const rigs = await made.stacks
            .readBook<Omit<RigDoc, 'engines'>>('spider', 'rigs')
            .find({ where: [['writId', '=', id]], orderBy: ['attempt', 'asc'] })
          expect(rigs.map(({ attempt }) => attempt)).toEqual([1, 2])
          // Never two at once: the second began after the first had left progress.
          expect((rigs[0]?.terminalAt ?? '') <= (rigs[1]?.createdAt ?? '')).toBe(true)
        }
        const runs = readRuns(log, fleet.killedAt)
        expect(runs.size).toBe(2 * wanted.size)
        expect(overlaps(runs)).toEqual([])
        const interrupted = [...runs.values()].flat().filter(({ isEnded }) => !isEnded).length
        if (!IS_FULL) expect(interrupted).toBeGreaterThan(0)
        console.log(
          `${name}, fails ${label}: ${wanted.size} writs, ${runs.size} rigs in ${Math.round(tookMs / 1000)} s, ` +
            `${kills} kills, ${interrupted} runs cut off by one`,
        )
        await made.g.shutdown()
      },
      IS_FULL ? 3_600_000 : 300_000,
    )
  },
)

/** What moves as long as the fleet does: rigs, writs that have ended. */
async function progressOf({ clerk, stacks }: SpiderGuild): Promise<number[]> {
  return [
    await stacks.readBook('spider', 'rigs').count(),
    await clerk.count({ phase: 'completed' }),
    await clerk.count({ phase: 'stuck' }),
  ]
}

/**
 * Processes that run an engine which has lost its process before. The third time it counts as failed, and its writ has lost a rig to
 * kills: that is a promise, too, but not the one that is shown here. On a busy machine it would come to that.
 */
async function holdersOfLapsed({ stacks }: SpiderGuild): Promise<Set<number>> {
  const engines = await stacks
    .readBook<{ id: string; lapses?: number; claim?: { owner: string } }>('spider', 'engines')
    .find({
      where: [
        ['status', '=', 'running'],
        ['lapses', '>', 0],
      ],
    })
  return new Set(engines.map(({ claim }) => Number.parseInt(claim?.owner ?? '', 10)))
}

/** A guild in this process that posts and reads, and runs nothing. */
function clientOf(address: string): Promise<SpiderGuild> {
  const [url = '', schema] = address.split('#')
  const backend = () =>
    address.startsWith('postgres')
      ? postgresStacks({ connectionString: url, schema: schema ?? '' })
      : sqliteStacks({ file: address })
  return spiderGuild(
    { backend, close: async () => undefined },
    { hasRetry: true, designs: { step: async () => ({ status: 'completed', yields: 1 }) } },
  )
}
