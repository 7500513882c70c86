import type { At } from '../../../core/time/time.js'
import type { WorkerRecord } from '../../../ports/ledger.js'
import { WORKER_FORGOTTEN_MS } from '../../../ports/limits.js'

/** The processes that run work, as they registered themselves. */
export class Workers {
  /** In the order in which they were last seen. */
  readonly #seen = new Map<string, WorkerRecord & { readonly seenAt: At }>()

  saw(worker: WorkerRecord, now: At): void {
    this.#seen.delete(worker.id)
    this.#seen.set(worker.id, { ...worker, seenAt: now })
    this.#forget(now)
  }

  left(id: string): void {
    this.#seen.delete(id)
  }

  all(now: At): readonly (WorkerRecord & { readonly seenAt: At })[] {
    this.#forget(now)
    return [...this.#seen.values()]
  }

  #forget(now: At): void {
    for (const { id, seenAt } of this.#seen.values()) {
      if (seenAt + WORKER_FORGOTTEN_MS > now) return
      this.#seen.delete(id)
    }
  }
}
