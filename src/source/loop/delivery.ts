import { LazySignal } from '../../core/lazy-signal.js'
import type { Ms } from '../../core/time.js'
import { LeaseLostError } from './errors.js'

/** Where a delivery stands in the loop. It is left exactly once, by being settled, given back, lost or abandoned. */
export type DeliveryState = 'held' | 'settled' | 'lost' | 'returned' | 'abandoned'

/** One thing the loop carries, from its fetch to its settlement, with the signal of its run. */
export class Delivery<D> extends LazySignal {
  readonly item: D
  /** Monotonic time at which the lease was last known to be ours. */
  leasedAt: Ms
  /** Monotonic time of the fetch. */
  readonly pulledAt: Ms
  started = false
  state: DeliveryState = 'held'
  /** How often its settlement has been tried, the present try included. */
  settleTries = 0
  /** Hears of every reason to stop. The signal itself keeps the first one only. */
  onAbort: ((reason: unknown) => void) | undefined = undefined

  constructor(item: D, now: Ms, leasedAt: Ms = now) {
    super()
    this.item = item
    this.leasedAt = leasedAt
    this.pulledAt = now
  }

  override abort(reason: unknown): void {
    super.abort(reason)
    this.onAbort?.(reason)
  }

  /** Its lease is gone: the run is told to stop, and its outcome will not be settled. */
  lose(cause?: unknown): void {
    if (this.state !== 'held') return
    this.state = 'lost'
    this.abort(new LeaseLostError(cause === undefined ? undefined : { cause }))
  }
}

/** A run carries one delivery, or a batch. */
export type Deliveries<D> = readonly [Delivery<D>, ...Delivery<D>[]]
