import type { Claimed } from '../ports/item.js'
import type { Delivery } from '../source/loop/delivery.js'

/** Work that this instance has taken: waiting for its turn, or running. */
export interface ActiveWork {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly attempt: number
  readonly status: 'pending' | 'running'
  readonly priority: number
  readonly group?: string
  /** When it began to run. */
  readonly runAt?: number
}

/** What this instance holds, by delivery and not by id: two deliveries of one item are two entries. */
export class ActiveSet {
  readonly #runAt = new Map<Delivery<Claimed>, number | undefined>()

  get size(): number {
    return this.#runAt.size
  }

  take(delivery: Delivery<Claimed>): void {
    this.#runAt.set(delivery, undefined)
  }

  start(delivery: Delivery<Claimed>, at: number): void {
    this.#runAt.set(delivery, at)
  }

  /** True if it was there, so that whoever counts counts once. */
  leave(delivery: Delivery<Claimed>): boolean {
    return this.#runAt.delete(delivery)
  }

  isRunning(delivery: Delivery<Claimed>): boolean {
    return this.#runAt.get(delivery) !== undefined
  }

  /** Everything that is held. */
  deliveries(): IterableIterator<Delivery<Claimed>> {
    return this.#runAt.keys()
  }

  /** What is held here, by id, with when it began; undefined: not yet. */
  begun(): Map<string, number | undefined> {
    return new Map([...this.#runAt].map(([{ item }, runAt]) => [item.envelope.id, runAt]))
  }

  /** The types of what runs here. */
  *runningTypes(): Iterable<string> {
    for (const [{ item }, runAt] of this.#runAt) if (runAt !== undefined) yield item.envelope.type
  }

  list(): ActiveWork[] {
    return [...this.#runAt].map(([{ item }, runAt]) => {
      const { id, type, groupId, attempt, priority, group } = item.envelope
      return {
        id,
        type,
        groupId,
        attempt,
        status: runAt === undefined ? 'pending' : 'running',
        priority,
        ...(group === undefined ? {} : { group }),
        ...(runAt === undefined ? {} : { runAt }),
      }
    })
  }
}
