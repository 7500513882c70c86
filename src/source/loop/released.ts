import type { At, Ms } from '../../core/time/time.js'

/** How much later than others a loop pulls what it released, at most. */
const COURTESY_MS = 100

/** One release: its due time lies between these, since the feed's own clock decides it. */
interface Return {
  readonly fromAt: At
  /** Infinity until the feed has answered. */
  toAt: At
  readonly courtesyMs: Ms
}

/**
 * What a loop released for later. Other workers get the first chance at it, and at nothing else: this loop pulls it a little
 * after it falls due, and everything else on time.
 */
export class Released {
  readonly #now: () => At
  readonly #returns = new Set<Return>()

  constructor(now: () => At) {
    this.#now = now
  }

  /** Something goes back for `delayMs`; `released` resolves when the feed has it. */
  add(delayMs: Ms, released: Promise<void>, idlePollMs: Ms): void {
    const courtesyMs = Math.min(delayMs / 2, idlePollMs / 2, COURTESY_MS)
    const one: Return = { fromAt: this.#now() + delayMs, toAt: Infinity, courtesyMs }
    this.#returns.add(one)
    void released.then(() => {
      one.toAt = this.#now() + delayMs
    })
  }

  /**
   * When to pull again: at `dueAt`, the next due time that the feed knows of, or at `pollAt`, whichever is first; but for
   * what was released here, a little later.
   */
  lookAt(dueAt: At | undefined, pollAt: At): At {
    let mine = Infinity
    let isMine = false
    let heldOff = pollAt
    const now = this.#now()
    for (const one of this.#returns) {
      const latestAt = (one.toAt === Infinity ? Math.max(one.fromAt, now) : one.toAt) + one.courtesyMs
      if (latestAt <= now) {
        this.#returns.delete(one)
        continue
      }
      mine = Math.min(mine, latestAt)
      // Due times come through two clocks: they are as exact as one round trip.
      const slackMs = Math.max(2, latestAt - one.courtesyMs - one.fromAt)
      if (dueAt !== undefined && dueAt >= one.fromAt - slackMs && dueAt <= latestAt) isMine = true
      // A poll at that time would take it from others just the same.
      if (heldOff >= one.fromAt - slackMs && heldOff < latestAt) heldOff = latestAt
    }
    return Math.min(heldOff, mine, dueAt === undefined || isMine ? Infinity : dueAt)
  }
}
