import type { At, Ms } from '../../core/time.js'
import type { Worker } from '../../ports/ledger.js'

/** A worker that was not heard of for this long is forgotten. */
const FORGOTTEN_AFTER: Ms = 3_600_000

/** The processes that run work, as they told of themselves. */
export class Workers {
  /** In the order in which they were last seen. */
  readonly #seen = new Map<string, Worker & { readonly seenAt: At }>()

  saw(worker: Worker, now: At): void {
    this.#seen.delete(worker.id)
    this.#seen.set(worker.id, { ...worker, seenAt: now })
    this.#forget(now)
  }

  /** It has stopped in order. */
  left(id: string): void {
    this.#seen.delete(id)
  }

  all(now: At): readonly (Worker & { readonly seenAt: At })[] {
    this.#forget(now)
    return [...this.#seen.values()]
  }

  #forget(now: At): void {
    for (const { id, seenAt } of this.#seen.values()) {
      if (seenAt + FORGOTTEN_AFTER > now) return
      this.#seen.delete(id)
    }
  }
}
