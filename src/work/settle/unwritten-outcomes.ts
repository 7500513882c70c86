import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { RunPendingSettlement } from './pending-settlement.js'

/**
 * The outcomes of runs of this process, until they are written or refused. An item that is delivered again meanwhile, because its
 * lease lapsed before its outcome was written, is settled with that outcome and does not run again.
 */
export class UnwrittenOutcomes {
  readonly #byId = new Map<string, RunPendingSettlement>()
  /** Those whose lease was lost, and when this process learnt of it, in that order. */
  readonly #lost = new Map<RunPendingSettlement, Ms>()
  /** When the last answered claim was sent. */
  #claimedMs: Ms = -Infinity
  readonly #keepMs: Ms

  /** `keepMs`: how long an outcome is kept after its lease was lost. */
  constructor(keepMs: Ms) {
    this.#keepMs = keepMs
  }

  add(settling: RunPendingSettlement): void {
    this.#byId.set(settling.ran.item.envelope.id, settling)
  }

  /** It is written, or will never be. */
  answered(settling: RunPendingSettlement): void {
    const { id } = settling.ran.item.envelope
    if (this.#byId.get(id) === settling) this.#byId.delete(id)
    this.#lost.delete(settling)
  }

  /** Its lease was lost, perhaps to our own claim, whose reply is still in flight: that delivery should find the outcome. */
  lost(settling: RunPendingSettlement, nowMs: Ms): void {
    this.#lost.set(settling, nowMs)
    this.#forget(nowMs)
  }

  /** A claim that was sent at this time was answered. */
  claimed(askedMs: Ms): void {
    this.#claimedMs = askedMs
    this.#forget(askedMs)
  }

  #forget(nowMs: Ms): void {
    for (const [settling, ms] of this.#lost) {
      if (nowMs - ms < this.#keepMs) return
      this.#lost.delete(settling)
      this.answered(settling)
    }
  }

  /**
   * The outcome of an earlier run of the same attempt. Not of a run that put its item off: whether that was written cannot be seen
   * from the item, and it is to run again in any case.
   */
  of({ envelope, lease, deliveries }: ClaimedItem): RunPendingSettlement | undefined {
    const kept = this.#byId.get(envelope.id)
    if (kept === undefined || kept.summary.kind === 'deferred' || kept.summary.kind === 'released') return undefined
    const was = kept.ran.item
    const isSameAttempt = was.envelope.attempt === envelope.attempt && was.envelope.redrives === envelope.redrives
    if (!isSameAttempt || was.lease.fence >= lease.fence) return undefined
    // Lost before the last claim was sent: another process may have run the item, and its outcome counts.
    const wasLostBefore = (this.#lost.get(kept) ?? Infinity) < this.#claimedMs
    return wasLostBefore && deliveries !== was.deliveries + 1 ? undefined : kept
  }
}
