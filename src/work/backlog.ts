import { backlogAlarm } from '../core/doer/backlog-alarm.js'
import type { Ms } from '../core/time.js'
import { queueDepths } from './queue-depth.js'
import type { Shared } from './shared.js'

/** Rings when the system has been behind without a break: no room for more, or queues that keep answering in full. */
export interface Backlog {
  behind(isBehind: boolean): void
}

const SILENT: Backlog = Object.freeze({ behind: () => undefined })

export function openBacklog(shared: Shared): Backlog {
  const { o, recorder } = shared
  const { onBacklog, backlogAfterMs, backlogEveryMs } = o.given
  if (onBacklog === undefined || backlogAfterMs === undefined) return SILENT
  const tell = async (backedUpForMs: Ms) => {
    const known = [...(await queueDepths(shared)).values()].filter((size) => size !== undefined)
    const queued = known.length === 0 ? undefined : known.reduce((sum, size) => sum + size, 0)
    onBacklog({ active: recorder.active.size, backedUpForMs, queued })
  }
  const alarm = backlogAlarm<Ms>(
    'createWork',
    {
      // An observer: what it throws is its own.
      onBacklog: (ms) => void tell(ms).catch(() => undefined),
      backlogAfterMs,
      ...(backlogEveryMs === undefined ? {} : { backlogEveryMs }),
    },
    o.clock,
    (ms) => ms,
  )
  return { behind: (isBehind) => alarm.pending(isBehind ? 1 : 0) }
}
