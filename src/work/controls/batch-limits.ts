import type { Clock } from '../../core/clock.js'
import type { At, Ms } from '../../core/time.js'
import type { Claimed } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { armLimits, checkLate, overBy, type RunOver } from './run-limits.js'

/**
 * The limits of items that run together, from before their inputs are looked at. One of them that is over cannot be taken out
 * of a batch: it is settled as what it is when the batch ends. When all of them are over, the batch is, too.
 */
export class BatchLimits {
  readonly #clock: Clock
  readonly #now: () => At
  readonly #deliveries: readonly Delivery<Claimed>[]
  readonly #overs = new Map<Delivery<Claimed>, RunOver>()
  readonly #disarms: readonly ((() => void) | undefined)[]
  readonly #startedMs: Ms
  /** Hears of each that is over, while the handler runs. */
  #onOver: (() => void) | undefined

  constructor(clock: Clock, now: () => At, deliveries: readonly Delivery<Claimed>[]) {
    this.#clock = clock
    this.#now = now
    this.#deliveries = deliveries
    this.#startedMs = clock.monotonic()
    const startedAt = now()
    this.#disarms = deliveries.map((delivery) => armLimits(clock, delivery, startedAt))
    for (const delivery of deliveries) {
      // Cancelled while it waited for its turn: nobody will say so again.
      if (delivery.aborted) this.#look(delivery, delivery.reason)
      delivery.onAbort = (reason) => this.#look(delivery, reason)
    }
  }

  /**
   * What the handler comes to, unless everything is over before: then `overran` hears of each item. It is not called at all
   * when everything is over already.
   */
  async until<T>(
    begun: readonly Delivery<Claimed>[],
    handle: () => Promise<T>,
    overran: (item: Claimed, handling: Promise<T>) => void,
  ): Promise<T> {
    const last = this.#lastOver(begun)
    if (last !== undefined) throw last
    const handling = handle()
    const ended = new Promise<T>((resolve, reject) => {
      this.#onOver = () => {
        const over = this.#lastOver(begun)
        if (over === undefined) return
        this.#onOver = undefined
        for (const { item } of begun) overran(item, handling)
        reject(over)
      }
      handling.then(resolve, reject)
      this.#onOver()
    })
    // What comes after the handler is no longer part of the run.
    return ended.finally(() => this.close())
  }

  close(): void {
    this.#onOver = undefined
    for (const delivery of this.#deliveries) delivery.onAbort = undefined
    for (const disarm of this.#disarms) disarm?.()
  }

  #look(delivery: Delivery<Claimed>, reason: unknown): void {
    const over = overBy(delivery.item, reason)
    if (over === undefined || this.#overs.has(delivery)) return
    this.#overs.set(delivery, over)
    this.#onOver?.()
  }

  /** Why the last of these is over; undefined while one of them is not. */
  #lastOver(begun: readonly Delivery<Claimed>[]): RunOver | undefined {
    return begun.every((delivery) => this.#overs.has(delivery)) ? this.#overs.get(begun.at(-1)!) : undefined
  }

  over(delivery: Delivery<Claimed>): RunOver | undefined {
    return this.#overs.get(delivery)
  }

  /** Throws if this one is over, or late, though the batch returned. */
  check(delivery: Delivery<Claimed>): void {
    const over = this.over(delivery)
    if (over !== undefined) throw over
    checkLate(delivery.item, this.#clock.monotonic() - this.#startedMs, this.#now())
  }
}
