import { backlogAlarm } from '../../core/doer/backlog-alarm.js'
import { WORK_METRIC_DETAILS, WORK_METRICS } from '../../core/metrics/work-metrics.js'
import type { Ms } from '../../core/time/time.js'
import type { Queue } from '../../ports/ports.js'
import type { EngineContext } from '../engine-context.js'

/** Calls `onBacklog` when the system has been behind without a break: no room for more, or claims that are always full. */
export interface Backlog {
  behind(isBehind: boolean): void
}

const SILENT: Backlog = Object.freeze({ behind: () => undefined })

export function openBacklog(context: EngineContext): Backlog {
  const { o, recorder } = context
  const { onBacklog, backlogAfterMs, backlogEveryMs } = o.given
  if (onBacklog === undefined || backlogAfterMs === undefined) return SILENT
  const report = async (backedUpForMs: Ms) => {
    const known = [...(await queueDepths(context)).values()].filter((size) => size !== undefined)
    const queued = known.length === 0 ? undefined : known.reduce((sum, size) => sum + size, 0)
    onBacklog({ active: recorder.active.size, backedUpForMs, queued })
  }
  const alarm = backlogAlarm<Ms>(
    'createWork',
    {
      // Errors of an observer are ignored.
      onBacklog: (ms) => void report(ms).catch(() => undefined),
      backlogAfterMs,
      ...(backlogEveryMs === undefined ? {} : { backlogEveryMs }),
    },
    o.clock,
    (ms) => ms,
  )
  return { behind: (isBehind) => alarm.pending(isBehind ? 1 : 0) }
}

/** How much each queue of the system holds, by its name; `undefined` for one that does not know. */
async function queueDepths({ ports, registry, queueName }: EngineContext): Promise<Map<string, number | undefined>> {
  const queues = [...new Set([ports.queue, ...registry.queues])]
  return new Map(await Promise.all(queues.map(async (queue) => [queueName(queue), await sizeOf(queue)] as const)))
}

/** Sets `work.queue_depth` of every queue that knows its size. */
export async function measureQueueDepths(context: EngineContext): Promise<void> {
  const { kind: _, ...details } = WORK_METRIC_DETAILS.queueDepth
  for (const [queue, depth] of await queueDepths(context))
    if (depth !== undefined) context.o.metrics.gauge(WORK_METRICS.queueDepth, { queue }, details).set(depth)
}

async function sizeOf(queue: Queue): Promise<number | undefined> {
  try {
    const size = await queue.size?.()
    return size !== undefined && Number.isFinite(size) ? size : undefined
  } catch {
    return undefined
  }
}
