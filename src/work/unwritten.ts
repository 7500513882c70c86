import type { Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { WorkSettling } from './work-settling.js'

/**
 * What runs of this process came to, until it is written or refused. An item that comes back meanwhile, because its lease was over
 * before its outcome could be written, is settled with that outcome and not run again.
 */
export class Unwritten {
  readonly #byId = new Map<string, WorkSettling>()
  /** Those whose lease was lost, and when that was heard, in that order. */
  readonly #lost = new Map<WorkSettling, Ms>()
  /** When the last claim was asked that was answered. */
  #claimedMs: Ms = -Infinity
  readonly #keepMs: Ms

  /** `keepMs`: how long an outcome is kept whose lease was lost. */
  constructor(keepMs: Ms) {
    this.#keepMs = keepMs
  }

  add(settling: WorkSettling): void {
    this.#byId.set(settling.ran.item.envelope.id, settling)
  }

  /** It is written, or was given up. */
  answered(settling: WorkSettling): void {
    const { id } = settling.ran.item.envelope
    if (this.#byId.get(id) === settling) this.#byId.delete(id)
    this.#lost.delete(settling)
  }

  /** Its lease was lost, perhaps to a claim of our own whose reply is still under way: that one is to find the outcome. */
  lost(settling: WorkSettling, nowMs: Ms): void {
    this.#lost.set(settling, nowMs)
    this.#forget(nowMs)
  }

  /** A claim was answered that was asked at this time. */
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
   * What an earlier run of this very try came to. A run that put its item off is not meant: whether that was written cannot be
   * told from the item, and it is to run again in any case.
   */
  of({ envelope, lease, deliveries }: Claimed): WorkSettling | undefined {
    const kept = this.#byId.get(envelope.id)
    if (kept === undefined || kept.told.kind === 'deferred' || kept.told.kind === 'released') return undefined
    const was = kept.ran.item
    const isSameTry = was.envelope.attempt === envelope.attempt && was.envelope.redrives === envelope.redrives
    if (!isSameTry || was.lease.fence >= lease.fence) return undefined
    // Lost before the last claim was asked, it may have gone to another process: then what that came to counts, and not ours.
    const wasLostBefore = (this.#lost.get(kept) ?? Infinity) < this.#claimedMs
    return wasLostBefore && deliveries !== was.deliveries + 1 ? undefined : kept
  }
}
