import type { Delivery } from './delivery.js'
import { Stages } from './stages.js'

interface Waiter {
  readonly isOver: () => boolean
  readonly resolve: () => void
}

/** What a run has in its hands, and who waits for it to get rid of some of it. */
export class Carried<D> {
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
    if (this.#waiters.size > 0) this.tell()
  }

  /** Resolves as soon as this is so. It is looked at whenever something leaves, or when told. */
  until(isOver: () => boolean): Promise<void> {
    if (isOver()) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.add({ isOver, resolve }))
  }

  tell(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.isOver()) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }
}
