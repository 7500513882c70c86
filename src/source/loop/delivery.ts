import { LazySignal } from '../../core/time/lazy-signal.js'
import type { Ms } from '../../core/time/time.js'
import { LeaseLostError } from './errors.js'
import type { Stage, Stages } from './stages.js'

/** The state of a delivery in the loop. It leaves the loop exactly once: settled, released, lost or abandoned. */
export type DeliveryState = 'held' | 'settled' | 'lost' | 'returned' | 'abandoned'

/** One thing the loop carries, from its fetch to its settlement, with the signal of its run. */
export class Delivery<D> extends LazySignal {
  readonly item: D
  /** Monotonic time at which the lease was last known to be ours. */
  leasedAt: Ms
  /** Monotonic time of the fetch. */
  readonly pulledAt: Ms
  /** Monotonic time at which the backend was asked to extend its lease. Undefined: no answer is awaited. */
  askedMs: Ms | undefined = undefined
  /** Its handler has been called. It may be started before that, while what it needs first is prepared. */
  hasBegun = false
  /** The call that extends its lease at this moment. */
  extending: Promise<unknown> | undefined = undefined
  /** A call that was to extend its lease hung, and it has not been extended since. */
  hasHung = false
  /** Why its lease could not be extended the last time it failed. */
  beatError: unknown = undefined
  state: DeliveryState = 'held'
  /** How often its settlement has been tried, the present try included. */
  settleTries = 0
  /** Called once, when the loop has nothing more to do with it. */
  onSettled: (() => void) | undefined = undefined
  /** Called with every reason to stop. The signal itself keeps only the first one. */
  onAbort: ((reason: unknown) => void) | undefined = undefined
  /** What the policy that admitted it keeps with it. A field, because a weak map of thousands costs more than the run itself. */
  kept: unknown = undefined
  /** The same for the place that it runs in, and for its outcome on the way to the backend. */
  place: unknown = undefined
  outcome: unknown = undefined
  /** Called when its lease is gone, which may be long before its handler ends. */
  onLost: ((delivery: Delivery<D>) => void) | undefined = undefined

  #stage: Stage = 'waiting'
  /** The counts that it moves in, for as long as a run of the loop holds it. */
  #counts: Stages | undefined

  constructor(item: D, now: Ms, leasedAt: Ms = now, counts?: Stages) {
    super()
    this.item = item
    this.leasedAt = leasedAt
    this.pulledAt = now
    this.#counts = counts
    if (counts !== undefined) counts.waiting += 1
  }

  get started(): boolean {
    return this.#stage !== 'waiting'
  }

  /** Its handler has been called and has not ended. */
  get isRunning(): boolean {
    return this.hasBegun && (this.#stage === 'running' || this.#stage === 'lent')
  }

  /** Its handler has ended: what is left is to write down what came of it. */
  get hasEnded(): boolean {
    return this.#stage === 'ended'
  }

  moveTo(stage: Stage): void {
    // A handler that outlives its run has no say any more.
    if (this.#stage === 'ended') return
    const counts = this.#counts
    if (counts !== undefined) {
      counts[this.#stage] -= 1
      counts[stage] += 1
    }
    this.#stage = stage
  }

  /** The run of the loop holds it no longer, and counts it no more. */
  uncount(): void {
    if (this.#counts !== undefined) this.#counts[this.#stage] -= 1
    this.#counts = undefined
  }

  override abort(reason: unknown): void {
    super.abort(reason)
    this.onAbort?.(reason)
  }

  /** Its lease is gone: the run's signal aborts, and its outcome will not be settled. */
  lose(cause?: unknown): void {
    if (this.state !== 'held') return
    this.state = 'lost'
    this.abort(new LeaseLostError(cause === undefined ? undefined : { cause }))
    this.onLost?.(this)
  }
}

/** A run carries one delivery, or a batch. */
export type Deliveries<D> = readonly [Delivery<D>, ...Delivery<D>[]]
