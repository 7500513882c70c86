import { WORK_METRIC_DETAILS, WORK_METRICS } from '../core/work-metrics.js'
import type { Queue } from '../ports/ports.js'
import type { Shared } from './shared.js'

/** How much each queue of the system holds, by its name; `undefined` for one that cannot tell. */
export async function queueDepths({ ports, registry, queueName }: Shared): Promise<Map<string, number | undefined>> {
  const queues = [...new Set([ports.queue, ...registry.queues])]
  return new Map(await Promise.all(queues.map(async (queue) => [queueName(queue), await sizeOf(queue)] as const)))
}

/** Asks every queue for its size, and sets `work.queue_depth` of those that answered. */
export async function measureQueueDepths(shared: Shared): Promise<void> {
  const { kind: _, ...details } = WORK_METRIC_DETAILS.queueDepth
  for (const [queue, depth] of await queueDepths(shared))
    if (depth !== undefined) shared.o.metrics.gauge(WORK_METRICS.queueDepth, { queue }, details).set(depth)
}

async function sizeOf(queue: Queue): Promise<number | undefined> {
  try {
    const size = await queue.size?.()
    return size !== undefined && Number.isFinite(size) ? size : undefined
  } catch {
    return undefined
  }
}
