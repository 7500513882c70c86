import { doublingDelay } from '../../core/retry/backoff.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import type { EventLoopTurns } from '../../core/time/event-loop-turns.js'
import type { Ms } from '../../core/time/time.js'
import type { SettleRetry } from './settler.js'

/** How the loop fetches, settles and ends. Everything here has been resolved: nothing is optional inside. */
export interface LoopOptions {
  readonly name: string
  readonly clock: Clock
  /** Lets the event loop in between two runs. Default: one for each loop. */
  readonly turns?: EventLoopTurns
  readonly settle: SettleRetry
  /** So many settlements failing one after the other end the run. */
  readonly maxSettleFailures: number
  /** How often a transient failure to fetch is tried again in a row, and the waits between. */
  readonly fetchRetry: { readonly attempts: number; readonly delayMs: (failures: number) => Ms }
  /** How long running work may go on after a stop, before its signal fires. */
  readonly drainMs: Ms
  /** How long it may go on after its signal fired, before it is left. */
  readonly graceMs: Ms
  /**
   * Whether what is left while it still runs is released immediately, so that others may begin it beside the run that did
   * not stop. Otherwise its heartbeat ends and it comes back when its lease has lapsed.
   */
  readonly givesBackWhatRuns: boolean
  /** The longest an idle loop sleeps without a pull. The fallback for lost wake-ups, never the mechanism. */
  readonly idlePollMs: Ms
}

/** What a caller who does not care gets. */
export const LOOP_DEFAULTS: LoopOptions = Object.freeze({
  name: 'hopper',
  clock: systemClock,
  settle: Object.freeze({ attempts: 3, baseMs: 50, maxMs: 5_000, timeoutMs: 5_000 }),
  maxSettleFailures: 20,
  fetchRetry: Object.freeze({
    attempts: 5,
    delayMs: (failures: number) => doublingDelay(failures - 1, { baseMs: 100, maxMs: 10_000 }),
  }),
  drainMs: 30_000,
  graceMs: 1_000,
  givesBackWhatRuns: true,
  idlePollMs: 1_000,
})
