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
export function keepLease({ clock, leaseMs, renew, onLost }: KeepLeaseOptions): () => void {
  let renewedAt = clock.monotonic()
  let isStopped = false
  let cancel = (): void => undefined
  const stop = (): void => {
    isStopped = true
    cancel()
  }
  const lose = (): void => {
    if (isStopped) return
    stop()
    onLost()
  }
  const renewOnce = async (): Promise<void> => {
    // Counted from before the call: the backend may have renewed it at any moment since then.
    const askedAt = clock.monotonic()
    const isHeld = await renew()
    if (isHeld) renewedAt = Math.max(renewedAt, askedAt)
    else lose()
  }
  const arm = (): void => {
    const leftMs = renewedAt + leaseMs - clock.monotonic()
    cancel = clock.after(Math.min(leaseMs / 3, leftMs), () => {
      if (clock.monotonic() - renewedAt >= leaseMs) return lose()
      arm()
      renewOnce().catch(() => undefined)
    })
  }
  arm()
  return stop
}
