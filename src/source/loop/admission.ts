import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { Deliveries, Delivery } from './delivery.js'
import type { Held } from './stages.js'

/**
 * Carries a run: executes it and settles it. `executed` is called as soon as the handler is done, for policies whose places are
 * about handlers and not about settlements; `settled` when the loop has no more to do with any of it. A handler that returns
 * immediately, on a feed that answers immediately, may have both called before this returns.
 */
export type RunDeliveries<D> = (deliveries: Deliveries<D>, executed?: () => void, settled?: () => void) => void

/** Lanes, doers, batchers, pause and back-pressure are policies behind these verbs. */
export interface Admission<D> {
  /**
   * How many to pull now, beside what is held already, and no more than there are leases left to keep alive; back-pressure answers with a pause, which only a stop cuts short.
   */
  capacity(held: Held, leasesLeft: number): MaybePromise<number | { readonly askAgainInMs: Ms }>
  /** A full doer or an unknown type answers with a give-back. */
  offer(delivery: Delivery<D>): 'taken' | { readonly releaseAfterMs: Ms }
  /** Hands the policy what it calls when a run's turn has come. Once, before the first offer. */
  attach(carry: RunDeliveries<D>): void
  /** Something that was held has left the loop. */
  left?(delivery: Delivery<D>): void
  /** Calls `wake` when the capacity rises from 0. */
  onRoom(wake: () => void): () => void
  /** Nothing more will come: partial batches run now. */
  finish(): void
  /** Start nothing any more; returns what was taken and not started. */
  drain(): readonly Delivery<D>[]
  /** Returns what is concerned and has not started; it will not be. Only for policies whose source can take things away. */
  withdraw?(isConcerned: (item: D) => boolean): readonly Delivery<D>[]
}
