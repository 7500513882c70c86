import { MillraceError } from '../../core/error.js'
import { number, readOptions } from '../../core/read-options.js'
import type { Ms } from '../../core/time/time.js'
import type { OutcomeSummary } from '../settle/settle.js'

/** Options of `runUntilIdle`. */
export interface UntilIdleOptions {
  /**
   * How long the call may take, from beginning to end: it stops claiming early enough for running handlers to end. Default: as long
   * as there is work.
   */
  readonly within?: Ms
}

/** What a run until idle did. */
export interface IdleRun {
  /** `idle`: nothing that is due is left. `time`: `within` is over. `stopped`: `stop()` was called. */
  readonly ended: 'idle' | 'time' | 'stopped'
  /** Runs that ended well. */
  readonly succeeded: number
  /** Runs that failed or were deferred, and whose items run again later. */
  readonly retried: number
  /** Items that died, by an error, a deadline or a crash. */
  readonly dead: number
  readonly cancelled: number
  /** Items that were claimed and given back, or left to their lease: another worker runs them. */
  readonly handedBack: number
}

/** Another call, or `start()`, has begun the work that this call would end. */
export class AlreadyWorkingError extends MillraceError {
  constructor() {
    super(
      'ALREADY_WORKING',
      'This system works already, or is stopping. Make it with createWork({ autoStart: false }), do not start it, and await one ' +
        'runUntilIdle() before the next.',
    )
  }
}

/** How long to claim, and how long what runs may then go on. */
export interface IdleTimes {
  readonly claimMs: Ms
  readonly drainMs: Ms
}

/** What a stop may take beside the drain: handlers that obey their signal late, and the record of the worker. */
const AFTER_DRAIN_MS: Ms = 1_000

/** Half of the time at least is for claiming; the rest is for what runs by then. */
export function idleTimes(options: UntilIdleOptions | undefined, stopDrain: Ms): IdleTimes {
  const { within } = readOptions('runUntilIdle', options, {
    within: number({ above: 0, infinite: true, default: Infinity }),
  })
  if (within === Infinity) return { claimMs: Infinity, drainMs: stopDrain }
  const reserveMs = Math.min(stopDrain + AFTER_DRAIN_MS, within / 2)
  return { claimMs: within - reserveMs, drainMs: Math.max(0, reserveMs - AFTER_DRAIN_MS) }
}

/** Counts what becomes of runs. */
export class RunTally {
  #succeeded = 0
  #retried = 0
  #dead = 0
  #cancelled = 0
  #released = 0

  count({ kind }: OutcomeSummary): void {
    if (kind === 'succeeded') this.#succeeded += 1
    else if (kind === 'retried' || kind === 'deferred') this.#retried += 1
    else if (kind === 'dead' || kind === 'expired') this.#dead += 1
    else if (kind === 'cancelled') this.#cancelled += 1
    else this.#released += 1
  }

  /** `left`: how many left the loop without a settlement. */
  result(ended: IdleRun['ended'], left: number): IdleRun {
    return {
      ended,
      succeeded: this.#succeeded,
      retried: this.#retried,
      dead: this.#dead,
      cancelled: this.#cancelled,
      handedBack: this.#released + left,
    }
  }
}
