import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'

/** Work that this system has claimed: waiting for its turn, or running. */
export interface ActiveWork {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly attempt: number
  readonly status: 'pending' | 'running'
  readonly priority: number
  readonly group?: string
  /** When its handler was called. */
  readonly runAt?: number
}

/** What this system holds, by delivery and not by id: two deliveries of one item are two entries. */
export class ActiveSet {
  readonly #runAt = new Map<Delivery<ClaimedItem>, number | undefined>()

  get size(): number {
    return this.#runAt.size
  }

  take(delivery: Delivery<ClaimedItem>): void {
    this.#runAt.set(delivery, undefined)
  }

  start(delivery: Delivery<ClaimedItem>, at: number): void {
    this.#runAt.set(delivery, at)
  }

  /** False if it had left before. */
  leave(delivery: Delivery<ClaimedItem>): boolean {
    return this.#runAt.delete(delivery)
  }

  isRunning(delivery: Delivery<ClaimedItem>): boolean {
    return this.#runAt.get(delivery) !== undefined
  }

  deliveries(): IterableIterator<Delivery<ClaimedItem>> {
    return this.#runAt.keys()
  }

  /** The items held here, with when their handlers were called; undefined: not yet. */
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
