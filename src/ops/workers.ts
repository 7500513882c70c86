import type { At } from '../core/time.js'
import type { ItemSummary } from '../ports/ledger.js'
import { isAlive, type SeenWorker } from '../work/alive.js'
import type { WorkerReport } from './api.js'
import type { Desk } from './desk.js'

/** So many running items are looked at to say who holds how many. More than a fleet usually runs, and one page. */
const MOST_HELD = 1_000

export function workerReport(worker: SeenWorker, now: At): WorkerReport {
  return { ...worker, isAlive: isAlive(worker, now) }
}

/** Everybody who was heard of, the most recently seen first, with how many items each holds where one page tells. */
export async function readWorkers(desk: Desk): Promise<readonly WorkerReport[]> {
  const inspect = desk.inspect('workers')
  const [now, workers, active] = await Promise.all([
    desk.now(),
    inspect.workers(),
    inspect.list({ state: 'active', limit: MOST_HELD }),
  ])
  const holds = active.next === undefined ? heldBy(active.items) : undefined
  return workers
    .map((worker) => {
      const report = workerReport(worker, now)
      return holds === undefined ? report : { ...report, holds: holds.get(worker.id) ?? 0 }
    })
    .sort((a, b) => b.seenAt - a.seenAt)
}

function heldBy(items: readonly ItemSummary[]): ReadonlyMap<string, number> {
  const holds = new Map<string, number>()
  for (const { holder } of items) if (holder !== undefined) holds.set(holder, (holds.get(holder) ?? 0) + 1)
  return holds
}
