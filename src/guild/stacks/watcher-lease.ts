import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'
import type { Outbox } from './backend.js'
import type { DurableWatcher } from './watchers.js'

export interface WatcherLeaseOptions {
  readonly watcher: DurableWatcher
  readonly outbox: Outbox
  readonly holder: string
  readonly clock: Clock
  readonly leaseMs: Ms
}

/** The right to tell one durable watcher its events, kept while a handler takes its time. Once lost it stays lost. */
export class WatcherLease {
  readonly #options: WatcherLeaseOptions
  #renewedAt: Ms
  #isLost = false
  #cancel: () => void = () => undefined

  /** Just claimed. */
  constructor(options: WatcherLeaseOptions) {
    this.#options = options
    this.#renewedAt = options.clock.monotonic()
    this.#arm()
  }

  /** Whether it is still ours. It asks the store where no renewal has been heard of for long: timers may have stood still. */
  async isHeld(): Promise<boolean> {
    const { clock, leaseMs } = this.#options
    if (!this.#isLost && clock.monotonic() - this.#renewedAt >= (leaseMs * 2) / 3) await this.#renew()
    return !this.#isLost
  }

  end(): void {
    this.#cancel()
  }

  #arm(): void {
    const { clock, leaseMs } = this.#options
    this.#cancel = clock.after(leaseMs / 3, () => {
      if (this.#isLost) return
      this.#arm()
      // A store that cannot be reached now is asked again, here or before the next event.
      this.#renew().catch(() => undefined)
    })
  }

  async #renew(): Promise<void> {
    const { outbox, watcher, holder, clock, leaseMs } = this.#options
    const askedAt = clock.monotonic()
    if (await outbox.renew(watcher.name, holder, leaseMs)) this.#renewedAt = askedAt
    else this.#isLost = true
  }
}
