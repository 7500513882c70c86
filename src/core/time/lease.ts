import type { Clock } from './clock.js'
import type { MaybePromise, Ms } from './time.js'

export interface KeepLeaseOptions {
  readonly clock: Clock
  /** How long the lease lasts after it was taken, which is now, or renewed. */
  readonly leaseMs: Ms
  /**
   * Renews the lease; false says that it is lost. A renewal that fails or hangs is repeated until the lease is over, so a
   * second call may start before the first has answered.
   */
  readonly renew: () => MaybePromise<boolean>
  /** Called once: the lease is over, or `renew` said that it is lost. Not called after the lease was stopped. */
  readonly onLost: () => void
}

/**
 * Renews a lease every third of its length until the returned function is called. A lease that was not renewed for its
 * whole length counts as lost, whatever the backend answers later: by then another process may hold it.
 */
export function keepLease(options: KeepLeaseOptions): () => void {
  const lease = new KeptLease(options)
  return () => lease.stop()
}

/** One object and one timer: a stream holds a lease for each message that runs. */
class KeptLease {
  readonly #o: KeepLeaseOptions
  #renewedAt: Ms
  #isStopped = false
  #cancel: () => void

  constructor(options: KeepLeaseOptions) {
    this.#o = options
    this.#renewedAt = options.clock.monotonic()
    this.#cancel = this.#armed(options.leaseMs)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  #armed(leftMs: Ms): () => void {
    const { clock, leaseMs } = this.#o
    return clock.after(Math.min(leaseMs / 3, leftMs), () => this.#due())
  }

  #due(): void {
    const leftMs = this.#renewedAt + this.#o.leaseMs - this.#o.clock.monotonic()
    if (leftMs <= 0) {
      this.#lose()
      return
    }
    this.#cancel = this.#armed(leftMs)
    this.#renew().catch(() => undefined)
  }

  async #renew(): Promise<void> {
    // Counted from before the call: the backend may have renewed it at any moment since then.
    const askedAt = this.#o.clock.monotonic()
    const isHeld = await this.#o.renew()
    if (isHeld) this.#renewedAt = Math.max(this.#renewedAt, askedAt)
    else this.#lose()
  }

  #lose(): void {
    if (this.#isStopped) return
    this.stop()
    this.#o.onLost()
  }
}
