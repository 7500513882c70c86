import type { Delivery } from './delivery.js'

/** Where in the loop something failed. */
export type LoopPhase = 'pull' | 'offer' | 'begin' | 'execute' | 'settle' | 'extend' | 'release'

/** What the loop reports, so that streams can count `source.*` and work can count `work.*`, never both. */
export interface LoopObserver<D, R> {
  pulled?(delivery: Delivery<D>): void
  started?(delivery: Delivery<D>): void
  /** After the settlement is durable. */
  settled?(delivery: Delivery<D>, outcome: R): void
  /** It could not be settled; it will be delivered again. */
  unsettled?(delivery: Delivery<D>, outcome: R, error: unknown): void
  lost?(delivery: Delivery<D>): void
  returned?(delivery: Delivery<D>): void
  abandoned?(delivery: Delivery<D>): void
  settleRetry?(delivery: Delivery<D>): void
  failed?(phase: LoopPhase, error: unknown): void
  /** The window has been full for `ms`: something could have been fetched, but there was no room. */
  stalled?(ms: number): void
}

/** What a run of the loop did. */
export interface LoopSummary {
  received: number
  settled: number
  settleFailures: number
  returned: number
  lost: number
  abandoned: number
}
