import type { ClaimedItem } from '../../ports/item.js'
import type { Notification } from '../../ports/ledger.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { CancelledError } from '../../source/loop/errors.js'
import type { EngineContext } from '../engine-context.js'

export interface EarlyHeartbeatOptions {
  readonly context: EngineContext
  /** Its outcome is on its way to the backend: a cancel comes too late. */
  readonly isSettling: (delivery: Delivery<ClaimedItem>) => boolean
  /** It was cancelled before it started. */
  readonly endUnstarted: (delivery: Delivery<ClaimedItem>) => void
}

/**
 * Sends heartbeats for single leases before the next regular one: for items that a notification names, and for items with new
 * progress. A heartbeat also answers whether the item was cancelled.
 */
export class EarlyHeartbeat {
  readonly #o: EarlyHeartbeatOptions
  readonly #context: EngineContext
  #leave: (() => void) | undefined

  constructor(options: EarlyHeartbeatOptions) {
    this.#o = options
    this.#context = options.context
  }

  /** Listens to the inbox of this process, until closed. */
  open(): void {
    const { ledger, worker } = this.#context
    this.#leave ??= ledger.onInbox(worker.id, (notification) => this.#onNotification(notification))
  }

  close(): void {
    this.#leave?.()
    this.#leave = undefined
  }

  /** A heartbeat for these deliveries, which then learn whether they are lost or cancelled. */
  async touch(
    deliveries: readonly Delivery<ClaimedItem>[],
    progress?: ReadonlyMap<Delivery<ClaimedItem>, string>,
  ): Promise<void> {
    const { ledger, worker, o } = this.#context
    const statuses = await ledger.extend(
      deliveries.map((delivery) => {
        const text = progress?.get(delivery)
        const { item, isRunning } = delivery
        return { lease: item.lease, running: isRunning, ...(text === undefined ? {} : { progress: text }) }
      }),
      o.visibility,
      worker,
    )
    const cancelled: Delivery<ClaimedItem>[] = []
    deliveries.forEach((delivery, i) => {
      if (statuses[i] === 'lost') delivery.lose()
      else if (statuses[i] === 'cancelled') cancelled.push(delivery)
    })
    if (cancelled.length > 0) await this.#cancel(cancelled)
  }

  /** Most notifications are about items that this process waits for and does not hold. */
  #onNotification({ itemIds }: Notification): void {
    if (itemIds.length === 0) return
    const notified = new Set(itemIds)
    const concerned: Delivery<ClaimedItem>[] = []
    for (const delivery of this.#context.recorder.active.deliveries()) {
      if (notified.has(delivery.item.envelope.id) && !this.#o.isSettling(delivery)) concerned.push(delivery)
    }
    if (concerned.length > 0) this.touch(concerned).catch((error) => this.#context.failed(error, 'queue'))
  }

  async #cancel(deliveries: readonly Delivery<ClaimedItem>[]): Promise<void> {
    const views = await this.#context.ledger.read(deliveries.map(({ item }) => item.lease.id))
    deliveries.forEach((delivery, i) => {
      const why = views[i]?.cancelReason
      delivery.abort(new CancelledError(why === undefined ? {} : { why }))
      if (!delivery.started) this.#o.endUnstarted(delivery)
    })
  }
}
