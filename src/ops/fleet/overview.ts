import type { At, Ms } from '../../core/time/time.js'
import type { Throughput, TypeCounts } from '../../ports/inspect.js'
import type { PausedNames } from '../../ports/ledger.js'
import { ITEM_STATES, type ItemState } from '../../ports/words.js'
import { isAlive, runs, type SeenWorker } from '../../work/worker/worker-registration.js'
import type { Overview, OverviewRow } from '../api.js'
import type { OpsContext } from '../context.js'
import { workerReport } from './workers.js'

const MINUTE_MS: Ms = 60_000

/** Everything that an overview is made from. */
export interface OverviewFacts {
  readonly now: At
  readonly counts: readonly TypeCounts[]
  /** Of the last minute. */
  readonly flow: readonly Throughput[]
  readonly workers: readonly SeenWorker[]
  readonly paused: PausedNames
}

/** Five calls, however many items there are: four in parallel, and one for the names that these returned. */
export async function readOverview(context: OpsContext): Promise<Overview> {
  const inspect = context.inspect('overview')
  const [now, counts, flow, workers] = await Promise.all([
    context.now(),
    inspect.counts(),
    inspect.throughput(MINUTE_MS),
    inspect.workers(),
  ])
  const names = namesOf(counts, flow, workers)
  const paused = (await context.ledger.paused?.(names)) ?? { queues: [], types: [] }
  return overviewOf({ now, counts, flow, workers, paused })
}

/** A ledger cannot list what is paused, but answers for given names: these are all known names. */
export function namesOf(
  counts: readonly TypeCounts[],
  flow: readonly Throughput[],
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
  // One row for each queue and type that either the counts or the throughput name.
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

function allCounts(counts: TypeCounts['counts']): Record<ItemState, number> {
  const all = Object.fromEntries(ITEM_STATES.map((word) => [word, counts[word] ?? 0]))
  // Every state has its number, which the type of `fromEntries` does not say.
  return all as Record<ItemState, number>
}

/** Names may hold any character; as JSON they cannot collide. */
function keyOf({ queue, type }: { readonly queue: string; readonly type: string }): string {
  return JSON.stringify([queue, type])
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
