import type { At } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import { isAlive, runs, type SeenWorker } from '../../work/alive.js'
import type { Desk } from '../desk.js'
import { durationText } from '../duration-text.js'
import { agoOf, type Found, GRACE_MS } from './suspicion.js'

/** Runs whose lease ended long ago. Any worker that looks at the queue takes them back: they show that none really does. */
export function lapsedIn(views: readonly ItemSummary[], now: At): readonly ItemSummary[] {
  return views.filter(
    ({ status, leaseUntil }) => status === 'running' && leaseUntil !== undefined && now - leaseUntil > GRACE_MS,
  )
}

/** Of those, the ones that a live worker should have taken back, and has not. The others have nobody at all: `Homes` tells. */
export async function neverTakenBack(
  desk: Desk,
  views: readonly ItemSummary[],
  workers: readonly SeenWorker[],
): Promise<readonly Found[]> {
  if (views.length === 0) return []
  const { ledger } = desk
  const [again, now, paused] = await Promise.all([
    desk.summaries(views.map(({ envelope }) => envelope.id)),
    desk.now(),
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
        code: 'lapsed',
        id,
        text: `${id} (${type}) was cut off: the lease of ${view.holder ?? 'its worker'} ended ${durationText(agoOf(view.leaseUntil, now))} ago, and no worker has taken it back.`,
        repair: `Take it back into queue "${queue}", as the next look of a worker would. If it stays there, restart the workers: they tell of themselves, but do not look for work.`,
        mend: { by: 'reclaim', queue },
      },
    ]
  })
}
