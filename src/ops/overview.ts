import type { At, Ms } from '../core/time.js'
import type { Counted, Flow, PausedNames } from '../ports/ledger.js'
import { ITEM_STATE_WORDS, type ItemStateWord } from '../ports/words.js'
import { isAlive, runs, type SeenWorker } from '../work/alive.js'
import type { Overview, OverviewRow } from './api.js'
import type { Desk } from './desk.js'
import { workerReport } from './workers.js'

const MINUTE_MS: Ms = 60_000

/** Everything that an overview is made of, read at one time. */
export interface OverviewFacts {
  readonly now: At
  readonly counts: readonly Counted[]
  /** Of the last minute. */
  readonly flow: readonly Flow[]
  readonly workers: readonly SeenWorker[]
  readonly paused: PausedNames
}

/** Five calls, however many items there are: four side by side, and one about the names that these told. */
export async function readOverview(desk: Desk): Promise<Overview> {
  const inspect = desk.inspect('overview')
  const [now, counts, flow, workers] = await Promise.all([
    desk.now(),
    inspect.counts(),
    inspect.flow(MINUTE_MS),
    inspect.workers(),
  ])
  const names = namesOf(counts, flow, workers)
  const paused = (await desk.ledger.paused?.(names)) ?? { queues: [], types: [] }
  return overviewOf({ now, counts, flow, workers, paused })
}

/** A ledger that cannot list what is paused answers for names: these are all that anybody has heard of. */
export function namesOf(
  counts: readonly Counted[],
  flow: readonly Flow[],
  workers: readonly SeenWorker[],
): PausedNames {
  const homes = [...counts, ...flow]
  const queues = [...homes.map(({ queue }) => queue), ...workers.flatMap((worker) => worker.queues)]
  const types = [...homes.map(({ type }) => type), ...workers.flatMap((worker) => worker.types)]
  return { queues: [...new Set(queues)].sort(), types: [...new Set(types)].sort() }
}

export function overviewOf({ now, counts, flow, workers, paused }: OverviewFacts): Overview {
  const alive = workers.filter((worker) => isAlive(worker, now))
  const flows = new Map(flow.map((one) => [keyOf(one), one]))
  const counted = new Map(counts.map((one) => [keyOf(one), one]))
  // What flows may have left nothing behind, and what stands may not flow: a row for each home that either names.
  const homes = new Map([...counts, ...flow].map((home) => [keyOf(home), home]))
  const rows = [...homes].map(([key, { queue, type }]): OverviewRow => {
    const { completed = 0, failed = 0, oldestDueAt } = flows.get(key) ?? {}
    return {
      queue,
      type,
      counts: allCounts(counted.get(key)?.counts ?? {}),
      completedPerMinute: completed,
      failedPerMinute: failed,
      ...(oldestDueAt === undefined ? {} : { oldestWaitMs: Math.max(0, now - oldestDueAt) }),
      workers: alive.filter((worker) => runs(worker, queue, type)).length,
    }
  })
  return {
    at: now,
    rows: rows.sort((a, b) => compare(a.queue, b.queue) || compare(a.type, b.type)),
    workers: workers.map((worker) => workerReport(worker, now)),
    paused: { queues: [...paused.queues].sort(), types: [...paused.types].sort() },
  }
}

function allCounts(counts: Counted['counts']): Record<ItemStateWord, number> {
  const all = Object.fromEntries(ITEM_STATE_WORDS.map((word) => [word, counts[word] ?? 0]))
  // Every word has its number, which `fromEntries` cannot tell.
  return all as Record<ItemStateWord, number>
}

/** Both names may hold any character; as JSON they cannot run into each other. */
function keyOf({ queue, type }: { readonly queue: string; readonly type: string }): string {
  return JSON.stringify([queue, type])
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
