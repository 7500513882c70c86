import type { LazySignal } from '../../core/time/lazy-signal.js'
import type { At, MaybePromise, Ms } from '../../core/time/time.js'
import type { LeaseStatus } from '../../ports/ledger.js'
import type { Delivery } from './delivery.js'

/** What one pull brought. */
export interface Pulled<D> {
  /** Empty: nothing now. */
  readonly items: readonly D[]
  /** Another pull now would find something, as far as the feed knows. */
  readonly more: boolean
  /** Monotonic time at which they were asked for: their leases may be as old as that. Default: as old as the answer. */
  readonly askedMs?: Ms
}

/** `lost`: the lease had moved on and nothing happened. */
export type SettleResult = 'settled' | 'lost'

/** One try to settle an outcome: a signal that aborts when its time is up, and what to call once with the answer. */
export interface SettleTry extends LazySignal {
  answered(result: SettleResult): void
  failed(error: unknown): void
}

/**
 * Where deliveries come from and go back to, `D` being what is carried and `R` what a run of it yields. A stream's
 * subscription is adapted to this by one function, the ledger by another.
 */
export interface Feed<D, R> {
  /** At most `max`. Rejects with `DrainedError` when closed and nothing is left, and with the abort reason on abort. */
  pull(max: number, signal: AbortSignal): Promise<Pulled<D>>
  /**
   * These begin to run: counted before their handler is called, so that only what ran counts when the process dies. `false`:
   * the lease was lost, and it is not run. Absent where nothing counts starts.
   */
  begin?(deliveries: readonly Delivery<D>[]): MaybePromise<readonly boolean[]>
  /** Applies the outcome, and answers the try, now or later. A throw is a failure of the try. */
  settle(delivery: Delivery<D>, outcome: R, by: SettleTry): void
  /** Releases what was not run, without spending an attempt where the backend can. Without a delay it keeps its place. */
  release(deliveries: readonly Delivery<D>[], delayMs?: Ms): Promise<void>
  /** Present where a delivery is leased: one batched heartbeat for all that are held. */
  readonly lease?: {
    readonly ms: Ms
    /** How often. Default: a third of `ms`. */
    readonly everyMs?: Ms
    /**
     * The backend itself decides about an outcome that comes after its lease. So an outcome is offered to it however late, and
     * only what still runs is lost when the lease is over.
     */
    readonly isGuarded?: boolean
    extend(deliveries: readonly Delivery<D>[]): Promise<readonly LeaseStatus[]>
  }
  /** Calls `wake` when there is something to pull. Calls may be lost; the idle poll is the fallback. */
  onReady?(wake: () => void): () => void
  /** The instant at which the next thing falls due, so that one timer can be armed for it. */
  nextDueAt?(): At | undefined
  /** Whether a failed pull may succeed when tried again. Default: it may not, and the run ends. */
  isTransient?(error: unknown): boolean
}
