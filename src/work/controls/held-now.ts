import type { Ms } from '../../core/time.js'
import type { Claimed } from '../../ports/item.js'
import type { Ledger, Settled, Worker } from '../../ports/ledger.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { CancelledError } from '../../source/loop/errors.js'

export interface HeldNowOptions {
  readonly ledger: Ledger
  readonly worker: Worker
  readonly leaseMs: Ms
  /** What this process holds. */
  readonly held: () => Iterable<Delivery<Claimed>>
  /** Its outcome is on its way: whatever is heard of it now comes too late. */
  readonly isSettling: (delivery: Delivery<Claimed>) => boolean
  /** It was cancelled before its turn had come. */
  readonly endUnstarted: (delivery: Delivery<Claimed>) => void
  readonly onError: (error: unknown) => void
}

/**
 * Looks after single leases out of turn: those whose items were told of in our inbox, and those that have progress to tell.
 * Both are heartbeats, and a heartbeat answers whether the item was cancelled.
 */
export class HeldNow {
  readonly #o: HeldNowOptions
  #leave: (() => void) | undefined

  constructor(options: HeldNowOptions) {
    this.#o = options
  }

  /** Listens to the inbox of this process, until closed. */
  open(): void {
    this.#leave ??= this.#o.ledger.onInbox(this.#o.worker.id, (heard) => this.#hear(heard))
  }

  close(): void {
    this.#leave?.()
    this.#leave = undefined
  }

  /** A heartbeat for these alone. What their holders have to hear of it, they hear. */
  async touch(
    deliveries: readonly Delivery<Claimed>[],
    progress?: ReadonlyMap<Delivery<Claimed>, string>,
  ): Promise<void> {
    const { ledger, worker, leaseMs } = this.#o
    const words = await ledger.extend(
      deliveries.map((delivery) => {
        const said = progress?.get(delivery)
        const { item, isRunning } = delivery
        return { lease: item.lease, running: isRunning, ...(said === undefined ? {} : { progress: said }) }
      }),
      leaseMs,
      worker,
    )
    const cancelled: Delivery<Claimed>[] = []
    deliveries.forEach((delivery, i) => {
      if (words[i] === 'lost') delivery.lose()
      else if (words[i] === 'cancelled') cancelled.push(delivery)
    })
    if (cancelled.length > 0) await this.#cancel(cancelled)
  }

  /** Most of what is heard is the end of things that this process waits for: then it holds none of them any more. */
  #hear({ ids }: Settled): void {
    if (ids.length === 0) return
    const told = new Set(ids)
    const concerned: Delivery<Claimed>[] = []
    for (const delivery of this.#o.held()) {
      if (told.has(delivery.item.envelope.id) && !this.#o.isSettling(delivery)) concerned.push(delivery)
    }
    if (concerned.length > 0) this.touch(concerned).catch(this.#o.onError)
  }

  async #cancel(deliveries: readonly Delivery<Claimed>[]): Promise<void> {
    const views = await this.#o.ledger.read(deliveries.map(({ item }) => item.lease.id))
    deliveries.forEach((delivery, i) => {
      const why = views[i]?.cancelled
      delivery.abort(new CancelledError(why === undefined ? {} : { why }))
      if (!delivery.started) this.#o.endUnstarted(delivery)
    })
  }
}
