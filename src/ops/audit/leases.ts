import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import { isAlive, runs, type SeenWorker } from '../../work/worker/worker-registration.js'
import type { OpsContext } from '../context.js'
import { durationText } from '../duration-text.js'
import { ageOf, type Found, GRACE_MS } from './found.js'

/** Runs whose lease ended long ago. Any worker that claims from the queue reclaims them, so none really does. */
export function lapsedLeases(views: readonly ItemSummary[], now: At): readonly ItemSummary[] {
  return views.filter(
    ({ status, leaseUntil }) => status === 'running' && leaseUntil !== undefined && now - leaseUntil > GRACE_MS,
  )
}

/** Those that a live worker should have reclaimed. The others have no worker at all, which `QueueTypes` reports. */
export async function notReclaimed(
  context: OpsContext,
  views: readonly ItemSummary[],
  workers: readonly SeenWorker[],
): Promise<readonly Found[]> {
  if (views.length === 0) return []
  const { ledger } = context
  const [again, now, paused] = await Promise.all([
    context.summaries(views.map(({ envelope }) => envelope.id)),
    context.now(),
    ledger.paused?.({
      queues: views.map(({ queue }) => queue ?? 'default'),
      types: views.map(({ envelope }) => envelope.type),
    }),
  ])
  const alive = workers.filter((worker) => isAlive(worker, now))
  return views.flatMap((view, i): readonly Found[] => {
    const queue = view.queue ?? 'default'
    const { id, type } = view.envelope
    if (again[i]?.status !== 'running' || again[i].leaseUntil !== view.leaseUntil) return []
    if (paused?.queues.includes(queue) === true || paused?.types.includes(type) === true) return []
    if (!alive.some((worker) => runs(worker, queue, type))) return []
    return [
      {
        code: 'lease-lapsed',
        id,
        text: `${id} (${type}) was cut off: the lease of ${view.worker ?? 'its worker'} ended ${durationText(ageOf(view.leaseUntil, now))} ago, and no worker has reclaimed it.`,
        repair: `Return it to queue "${queue}", as the next claim of a worker would. If it stays there, restart the workers: they send heartbeats but claim nothing.`,
        fix: { by: 'reclaim', queue },
      },
    ]
  })
}
