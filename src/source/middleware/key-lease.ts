import { MillraceError } from '../../core/error.js'
import type { Clock } from '../../core/time/clock.js'
import { keepLease } from '../../core/time/lease.js'
import type { Ms } from '../../core/time/time.js'
import type { Context } from '../message/context.js'
import type { IdempotencyStore } from './idempotency.js'

/** The lease on a key was lost although its message still runs here: a redelivery may run beside it. */
export class KeyLeaseLostError extends MillraceError {
  constructor(key: string, leaseMs: Ms) {
    super(
      'KEY_LEASE_LOST',
      `The lease of ${leaseMs} ms on "${key}" was lost while its message was running. Raise idempotency.leaseMs, or do ` +
        'not block the event loop for longer than a third of it.',
      { facts: { key, leaseMs } },
    )
  }
}

/** Keeps a key leased while its message runs, where the store can renew leases. Call what it returns when the run is over. */
export function keepKeyLease(
  store: IdempotencyStore,
  key: string,
  token: string,
  leaseMs: Ms,
  clock: Clock,
  ctx: Context,
  onError: (error: unknown) => void,
): () => void {
  if (store.renew === undefined) return () => undefined
  let isEnded = false
  const stop = keepLease({
    clock,
    leaseMs,
    async renew() {
      // An aborted run gets no more time: if it never ends, its redelivery must be able to begin.
      if (ctx.signal.aborted) end()
      if (isEnded) return true
      try {
        return (await store.renew?.(key, token, leaseMs)) !== false
      } catch (error) {
        if (!isEnded) onError(error)
        throw error
      }
    },
    onLost: () => onError(new KeyLeaseLostError(key, leaseMs)),
  })
  const end = (): void => {
    isEnded = true
    stop()
  }
  return end
}
