import type { Clock } from '../../core/clock.js'
import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import type { Context } from '../context.js'
import type { IdempotencyStore } from './idempotency.js'

/** Somebody else took the key, although its message is still running here. */
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

/** A key that is held while its message runs: its lease is renewed three times as often as it would lapse. */
export class KeyLease {
  readonly key: string
  readonly token: string
  readonly #store: IdempotencyStore
  readonly #leaseMs: Ms
  readonly #clock: Clock
  readonly #ctx: Context
  readonly #onError: (error: unknown) => void
  #isEnded = false
  #cancel: (() => void) | undefined

  constructor(
    store: IdempotencyStore,
    key: string,
    token: string,
    leaseMs: Ms,
    clock: Clock,
    ctx: Context,
    onError: (error: unknown) => void,
  ) {
    this.#store = store
    this.key = key
    this.token = token
    this.#leaseMs = leaseMs
    this.#clock = clock
    this.#ctx = ctx
    this.#onError = onError
    this.#arm()
  }

  /** The run is over: the lease is no longer renewed, and nothing else happens to it. */
  end(): void {
    this.#isEnded = true
    this.#cancel?.()
  }

  #arm(): void {
    if (this.#store.renew === undefined) return
    this.#cancel = this.#clock.after(this.#leaseMs / 3, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    // A run that was told to stop gets no more time: if it never ends, its redelivery must be able to begin.
    if (this.#ctx.signal.aborted) return
    try {
      const isHeld = await this.#store.renew?.(this.key, this.token, this.#leaseMs)
      if (this.#isEnded) return
      if (isHeld === false) return this.#onError(new KeyLeaseLostError(this.key, this.#leaseMs))
    } catch (error) {
      if (this.#isEnded) return
      this.#onError(error)
    }
    this.#arm()
  }
}
