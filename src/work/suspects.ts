import type { Ms } from '../core/time.js'
import { GroupCommit } from '../ports/group-commit.js'
import type { Claimed } from '../ports/item.js'
import type { LeaseWord } from '../ports/ledger.js'
import type { Delivery } from '../source/loop/delivery.js'
import { CancelledError } from '../source/loop/errors.js'
import { Probation } from './probation.js'
import type { Shared } from './shared.js'

/** How long an item that was held when a process died is watched once it runs again. */
const PROBATION_MS: Ms = 1_000

/**
 * Items that were held when a process died: each may be what brought it down. Before one runs again the backend is told that it
 * runs, so that the next death counts as its crash; and it begins on probation.
 */
export class Suspects {
  readonly #s: Shared
  readonly #probation: Probation
  readonly #onProbation = new WeakMap<Delivery<Claimed>, () => void>()
  readonly #marks: GroupCommit<Delivery<Claimed>, LeaseWord>
  /** Of the run of the loop that was last heard of: one listener for each, not for each item. */
  #stopping: AbortSignal | undefined
  /** A backend that does not hear is reported once, until it does. */
  #hasReported = false

  constructor(shared: Shared) {
    const { o, ledger } = shared
    this.#s = shared
    this.#probation = new Probation(o.clock, Math.min(o.heartbeat, PROBATION_MS))
    this.#marks = new GroupCommit({
      flush: (batch) =>
        ledger.extend(
          batch.map(({ item }) => ({ lease: item.lease, running: true })),
          o.visibility,
          shared.told(),
        ),
      maxUnsent: Infinity,
      maxUnderWay: Infinity,
      patience: { ms: o.visibility, clock: o.clock },
    })
  }

  /** Whether it may begin now; waits until it may beside the others. A run that stops begins nothing. */
  async mayBegin(delivery: Delivery<Claimed>, stopping: AbortSignal): Promise<boolean> {
    if (stopping.aborted) return false
    if (this.#stopping !== stopping) {
      this.#stopping = stopping
      stopping.addEventListener('abort', () => this.#probation.letOut(), { once: true })
    }
    const leave = await this.#probation.enter(delivery.item.crashes > 0)
    if (leave === undefined) return false
    this.#onProbation.set(delivery, leave)
    return delivery.state === 'held' && (await this.mark(delivery)) && !stopping.aborted
  }

  /** Tells the backend that it is about to run. False: its lease is lost, or the backend could not note it. */
  async mark(delivery: Delivery<Claimed>): Promise<boolean> {
    // Plain ports are told of every begin.
    if (delivery.item.lapses === 0 || this.#s.ledger.begin !== undefined) return true
    // A heartbeat under way says that it does not run yet: written after the mark, it would take that back.
    if (delivery.extending !== undefined) await this.#answered(delivery.extending)
    delivery.hasBegun = true
    const isMarked = await this.#mark(delivery)
    if (!isMarked) delivery.hasBegun = false
    return isMarked
  }

  /** A heartbeat that hangs is not waited for longer than until the next. */
  #answered(extending: Promise<unknown>): Promise<void> {
    const { clock, heartbeat } = this.#s.o
    return new Promise((go) => {
      const cancel = clock.after(heartbeat, go)
      void extending.then(() => {
        cancel()
        go()
      })
    })
  }

  async #mark(delivery: Delivery<Claimed>): Promise<boolean> {
    const { clock, visibility } = this.#s.o
    try {
      const askedMs = clock.monotonic()
      const word = await this.#marks.add(delivery)
      this.#hasReported = false
      if (word === 'cancelled') delivery.abort(new CancelledError())
      if (word === 'lost') delivery.lose()
      else if (word !== 'unknown') delivery.leasedAt = Math.max(delivery.leasedAt, askedMs)
      // A process that stood still hears an old answer: by now another may hold the item.
      if (clock.monotonic() - delivery.leasedAt >= visibility) delivery.lose()
      // Unknown: a transaction of somebody's own holds the row. A run that is not marked would not count if it brings us down.
      return delivery.state === 'held' && word !== 'unknown'
    } catch (error) {
      if (!this.#hasReported) this.#s.failed(error, 'queue')
      this.#hasReported = true
      return false
    }
  }

  /** It is settled, or has left: others may begin. */
  left(delivery: Delivery<Claimed>): void {
    this.#onProbation.get(delivery)?.()
  }
}
