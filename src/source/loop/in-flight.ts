import type { Delivery } from './delivery.js'
import { Stages } from './stages.js'

interface Waiter {
  readonly isOver: () => boolean
  readonly resolve: () => void
}

/** The deliveries that a run holds, and the callers that wait for some of them to leave. */
export class InFlight<D> {
  readonly #deliveries = new Set<Delivery<D>>()
  readonly #waiters = new Set<Waiter>()
  /** How far each of them has come: a delivery that is made for this run counts itself here. */
  readonly stages = new Stages()

  get size(): number {
    return this.#deliveries.size
  }

  has(delivery: Delivery<D>): boolean {
    return this.#deliveries.has(delivery)
  }

  all(): Delivery<D>[] {
    return [...this.#deliveries]
  }

  add(delivery: Delivery<D>): void {
    this.#deliveries.add(delivery)
  }

  delete(delivery: Delivery<D>): void {
    if (this.#deliveries.delete(delivery)) delivery.uncount()
    if (this.#waiters.size > 0) this.recheck()
  }

  /** Resolves as soon as `isOver` answers true. It is asked whenever something leaves, and by `recheck`. */
  until(isOver: () => boolean): Promise<void> {
    if (isOver()) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.add({ isOver, resolve }))
  }

  recheck(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.isOver()) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }
}
