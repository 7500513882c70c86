import type { Ms } from '../../core/time/time.js'
import type { Admission } from './admission.js'
import { HopperClosedError } from './errors.js'
import type { Feed } from './feed.js'
import type { LoopObserver, LoopSummary } from './loop-observer.js'
import { LOOP_DEFAULTS, type LoopOptions } from './loop-options.js'
import { type Execute, LoopRun } from './loop-run.js'

/**
 * The one consume loop: it pulls, admits, runs, settles, heartbeats and drains, and is generic over what it carries (`D`)
 * and over what a run yields (`R`). Streams use it with lanes and middleware, work with doers and batchers. It knows
 * neither: where deliveries come from is a `Feed`, when they run is an `Admission`, what happens is `execute`.
 *
 * What it guarantees: nothing is fetched after a stop; everything fetched leaves the loop exactly once (settled, given
 * back, lost, or abandoned after the deadline); an outcome is never settled on a lease that is known to be lost.
 */
export class Loop<D, R> {
  readonly #options: LoopOptions
  readonly #watch: LoopObserver<D, R>
  readonly #runs = new Map<LoopRun<D, R>, Promise<unknown>>()
  #isClosed = false

  constructor(options: Partial<LoopOptions> = {}, watch: LoopObserver<D, R> = {}) {
    this.#options = Object.freeze({ ...LOOP_DEFAULTS, ...options })
    this.#watch = watch
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isRunning(): boolean {
    return this.#runs.size > 0
  }

  /**
   * Consumes until `stop` aborts, `close` is called, the feed is drained (all three resolve) or a fetch fails for good
   * (rejects with that error, after draining).
   */
  async run(feed: Feed<D, R>, by: Admission<D>, execute: Execute<D, R>, stop?: AbortSignal): Promise<LoopSummary> {
    if (this.#isClosed) throw new HopperClosedError(this.#options.name)
    const run = new LoopRun(this.#options, this.#watch, feed, by, execute)
    const ended = run.go(stop)
    this.#runs.set(
      run,
      ended.catch(() => undefined),
    )
    try {
      return await ended
    } finally {
      this.#runs.delete(run)
    }
  }

  /** Stops every run and waits for it. Idempotent; takes effect before it returns. */
  async close(drainMs: Ms = this.#options.drainMs): Promise<void> {
    this.#isClosed = true
    await this.stop(drainMs)
  }

  /** Like `close`, but the loop may run again. */
  async stop(drainMs: Ms = this.#options.drainMs): Promise<void> {
    for (const run of this.#runs.keys()) run.stop(drainMs)
    await Promise.all(this.#runs.values())
  }

  /** Parts with what is concerned, in every run: released if it has not started, otherwise ended, or lost in the end. */
  async withdraw(isConcerned: (item: D) => boolean): Promise<void> {
    await Promise.all([...this.#runs.keys()].map((run) => run.withdraw(isConcerned)))
  }
}
