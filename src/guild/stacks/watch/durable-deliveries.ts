import { bookKey } from '../documents/names.js'
import type { Doc } from '../documents/value.js'
import type { Scope } from '../transaction/scope.js'
import { DurableDelivery, type DurableDeliveryOptions } from './durable-delivery.js'
import type { ChangeEvent } from './events.js'
import type { DurableWatcher } from './watchers.js'

/** The deliveries to all durable watchers of this process. There are none before `begin`. */
export class DurableDeliveries {
  readonly #options: Omit<DurableDeliveryOptions, 'watcher'>
  readonly #deliveries: DurableDelivery[] = []
  #stopListening: () => void = () => undefined
  #hasBegun = false
  #isStopped = false

  constructor(options: Omit<DurableDeliveryOptions, 'watcher'>) {
    this.#options = options
  }

  /** Delivers from now on, first what a crash has left behind. */
  async begin(watchers: readonly DurableWatcher[]): Promise<void> {
    if (this.#hasBegun || this.#isStopped) return
    this.#hasBegun = true
    for (const watcher of watchers) this.#deliveries.push(new DurableDelivery({ ...this.#options, watcher }))
    if (this.#deliveries.length === 0) return
    this.#stopListening = this.#options.outbox.onAppend(() => {
      for (const delivery of this.#deliveries) delivery.wake()
    })
    await Promise.all(this.#deliveries.map((delivery) => delivery.begin()))
  }

  /** Ends for good, when the handlers that run now have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopListening()
    await Promise.all(this.#deliveries.map((delivery) => delivery.stop()))
  }

  /**
   * Call it before these events are committed: from then on they are what a watcher may be behind with. What it returns delivers
   * them. Only a call from outside waits for that, because a handler would wait for itself; and only for watchers that were not
   * behind, because a write does not wait for the events of others.
   */
  of(events: readonly ChangeEvent<Doc>[], scope: Scope): (seq: number) => Promise<void> {
    const books = new Set(events.map(bookKey))
    const mayWait = scope.hops === 0 && !scope.isDurable
    const concerned = this.#deliveries
      .filter(({ watcher }) => books.has(bookKey(watcher.ref)))
      .map((delivery) => ({ delivery, isAwaited: mayWait && !delivery.isBehind }))
    return async (seq) => {
      await Promise.all(
        concerned.map(({ delivery, isAwaited }) => (isAwaited ? delivery.settled(seq) : delivery.wake())),
      )
    }
  }
}
