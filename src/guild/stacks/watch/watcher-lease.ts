import type { Clock } from '../../../core/time/clock.js'
import { keepLease } from '../../../core/time/lease.js'
import type { Ms } from '../../../core/time/time.js'
import type { Outbox } from '../backend.js'
import type { DurableWatcher } from './watchers.js'

export interface WatcherLeaseOptions {
  readonly watcher: DurableWatcher
  readonly outbox: Outbox
  readonly holder: string
  readonly clock: Clock
  readonly leaseMs: Ms
}

/** The right to deliver events to one durable watcher, kept while its handler runs. Once lost it stays lost. */
export class WatcherLease {
  readonly #options: WatcherLeaseOptions
  #renewedAt: Ms
  #isLost = false
  /** Stops renewing the lease. */
  readonly end: () => void

  /** Just claimed. */
  constructor(options: WatcherLeaseOptions) {
    const { clock, leaseMs } = options
    this.#options = options
    this.#renewedAt = clock.monotonic()
    const onLost = (): void => {
      this.#isLost = true
    }
    this.end = keepLease({ clock, leaseMs, renew: () => this.#renew(), onLost })
  }

  /** Whether this process still holds it. Asks the store when the last renewal is long ago: timers may have stood still. */
  async isHeld(): Promise<boolean> {
    const { clock, leaseMs } = this.#options
    if (!this.#isLost && clock.monotonic() - this.#renewedAt >= (leaseMs * 2) / 3) this.#isLost = !(await this.#renew())
    return !this.#isLost
  }

  async #renew(): Promise<boolean> {
    const { outbox, watcher, holder, clock, leaseMs } = this.#options
    const askedAt = clock.monotonic()
    const isHeld = await outbox.renew(watcher.name, holder, leaseMs)
    if (isHeld) this.#renewedAt = askedAt
    return isHeld
  }
}
