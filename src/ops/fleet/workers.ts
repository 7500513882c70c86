import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { WorkerRecord } from '../../ports/ledger.js'
import { isAlive, type SeenWorker } from '../../work/worker/worker-registration.js'
import type { WorkerReport } from '../api.js'
import type { OpsContext } from '../context.js'

/** How many running items are read to count those of each worker: one page, more than most fleets run. */
const MOST_HELD = 1_000

export function workerReport(worker: SeenWorker, now: At): WorkerReport {
  return { ...worker, isAlive: isAlive(worker, now) }
}

/** All known workers, the most recently seen first, with how many items each holds if one page lists them all. */
export async function readWorkers(context: OpsContext): Promise<readonly WorkerReport[]> {
  const inspect = context.inspect('workers')
  const [now, workers, active] = await Promise.all([
    context.now(),
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
  for (const { worker } of items) if (worker !== undefined) holds.set(worker, (holds.get(worker) ?? 0) + 1)
  return holds
}

/** How many workers, and types of each, a message names. */
const NAMED_WORKERS = 3
const NAMED_TYPES = 5

/** Names the live workers and their types, for a message about a type that none of them handles. */
export function aliveText(serving: readonly Pick<WorkerRecord, 'id' | 'host' | 'types'>[]): string {
  const named = serving.slice(0, NAMED_WORKERS).map(({ id, host, types }) => {
    // Every worker handles the gates of dependencies.
    const own = types.filter((type) => !type.startsWith('@work/')).map((type) => `"${type}"`)
    return `${host} (worker ${id}, ${own.length === 0 ? 'no types' : `types ${shortened(own, NAMED_TYPES)}`})`
  })
  return `Alive there: ${shortened(named, NAMED_WORKERS, serving.length)}.`
}

/** What to do about items of a type that no live worker handles. `what` stands for the items: it or them. */
export function unhandledRemedy(type: string, what: 'it' | 'them'): string {
  return (
    `Start a worker that has "${type}" in its \`work\` list. Otherwise cancel ${what}, or start a worker with unknownTypeTimeout: ` +
    `it dead-letters items that have waited for that long.`
  )
}

function shortened(words: readonly string[], most: number, all = words.length): string {
  const shown = words.slice(0, most)
  return all > shown.length ? `${shown.join(', ')} and ${all - shown.length} more` : shown.join(', ')
}
