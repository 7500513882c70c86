import { type Clock, sleepOn } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import type { Owner, Scheduler } from './scheduler.js'

/** Wall time at the beginning of every world. */
export const WORLD_STARTS_AT: At = Date.UTC(2026, 0, 1)

/** The clock of one process, or of the world itself. `skewMs`: how far its wall time is off. Its timers are events. */
export function processClock(scheduler: Scheduler, owner: Owner | undefined, skewMs: Ms): Clock {
  const after: Clock['after'] = (ms, run) => scheduler.schedule(Number.isNaN(ms) ? 0 : ms, owner, run)
  return Object.freeze({
    now: () => WORLD_STARTS_AT + scheduler.nowMs + skewMs,
    monotonic: () => scheduler.nowMs,
    after,
    sleep: (ms: Ms, signal?: AbortSignal) => sleepOn(after, ms, signal),
  })
}
