import type { Ms } from '../../time/time.js'
import type { Doer } from '../doer.js'
import { PermitBatch } from './permit-batch.js'
import type { RateQueue, RateQueues } from './rate-queues.js'

/** What one round works on. */
export interface RateRound {
  readonly queues: RateQueues
  readonly inner: Pick<Doer, 'available' | 'onAvailable'>
  /** Whether all tasks count in one bucket: when that is empty, the round is over. */
  readonly hasOneBucket: boolean
  /** Hands the oldest task of a queue to the inner doer. */
  readonly admit: (queue: RateQueue) => void
  /** The instant at which something that was refused for `ms` is to be tried again. */
  readonly until: (ms: Ms) => Ms
  /** Called when permits could not be returned. */
  readonly report: (error: unknown) => void
}

/**
 * Lets through what may pass, oldest first, and blocks the queues that may not. Returns until when the door is closed for
 * all; `undefined` where it is not. Rejects when a store fails; the tasks then still wait.
 */
export async function admitRound(round: RateRound): Promise<Ms | undefined> {
  const permits = new PermitBatch()
  try {
    return await admitAll(round, permits)
  } finally {
    await permits.close().catch(round.report)
  }
}

async function admitAll(round: RateRound, permits: PermitBatch): Promise<Ms | undefined> {
  const { queues, inner, hasOneBucket, until } = round
  for (let queue = queues.first(); queue !== undefined; queue = queues.first()) {
    const room = inner.available()
    // A doer that does not say when it has room again has to be asked.
    if (room <= 0) return inner.onAvailable === undefined ? until(0) : undefined
    const { all, group } = queue.buckets
    const groupWaitMs = group && (await permits.spend(group, Math.min(room, queue.tasks.size)))
    if (groupWaitMs !== undefined) {
      queues.block(queue, until(groupWaitMs))
      continue
    }
    const waitMs = await permits.spend(all, Math.min(room, hasOneBucket ? queues.openSize : queue.tasks.size))
    if (waitMs === undefined) {
      round.admit(queue)
      continue
    }
    // A task that does not start must not cost its group anything.
    if (group !== undefined) permits.unspend(group)
    if (hasOneBucket) return until(waitMs)
    queues.block(queue, until(waitMs))
  }
  return undefined
}
