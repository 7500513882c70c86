import type { BrokerMessage } from './broker-message.js'
import type { BrokerSubscription } from './broker-subscription.js'

/** The open subscriptions of an inlet, and whether they deliver. */
export class Subscriptions<M extends BrokerMessage> {
  readonly #open = new Set<BrokerSubscription<M>>()
  #isPaused = false

  get isPaused(): boolean {
    return this.#isPaused
  }

  add(sub: BrokerSubscription<M>): void {
    this.#open.add(sub)
  }

  delete(sub: BrokerSubscription<M>): void {
    this.#open.delete(sub)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    for (const sub of this.#open) sub.nudge()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((sub) => sub.close()))
  }
}
