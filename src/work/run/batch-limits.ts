import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { armLimits, checkLate, overBy, type RunOver } from './run-limits.js'

/**
 * The limits of items that run together, from before their inputs are checked. An item whose run is over cannot leave its batch:
 * it is settled when the batch ends. When all of them are over, the batch is over too.
 */
export class BatchLimits {
  readonly #clock: Clock
  readonly #now: () => At
  readonly #deliveries: readonly Delivery<ClaimedItem>[]
  readonly #overs = new Map<Delivery<ClaimedItem>, RunOver>()
  readonly #disarms: readonly ((() => void) | undefined)[]
  readonly #startedMs: Ms
  /** Called for each that is over, while the handler runs. */
  #onOver: (() => void) | undefined

  constructor(clock: Clock, now: () => At, deliveries: readonly Delivery<ClaimedItem>[]) {
    this.#clock = clock
    this.#now = now
    this.#deliveries = deliveries
    this.#startedMs = clock.monotonic()
    const startedAt = now()
    this.#disarms = deliveries.map((delivery) => armLimits(clock, delivery, startedAt))
    for (const delivery of deliveries) {
      // It was cancelled while it waited for its turn: there is no second notification.
      if (delivery.aborted) this.#check(delivery, delivery.reason)
      delivery.onAbort = (reason) => this.#check(delivery, reason)
    }
  }

  /**
   * What the handler returns, unless all of them are over first: then `overran` is called for each. The handler is not called
   * when all of them are over already.
   */
  async until<T>(
    begun: readonly Delivery<ClaimedItem>[],
    handle: () => Promise<T>,
    overran: (item: ClaimedItem, handling: Promise<T>) => void,
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
    // What follows is no longer part of the run.
    return ended.finally(() => this.close())
  }

  close(): void {
    this.#onOver = undefined
    for (const delivery of this.#deliveries) delivery.onAbort = undefined
    for (const disarm of this.#disarms) disarm?.()
  }

  #check(delivery: Delivery<ClaimedItem>, reason: unknown): void {
    const over = overBy(delivery.item, reason)
    if (over === undefined || this.#overs.has(delivery)) return
    this.#overs.set(delivery, over)
    this.#onOver?.()
  }

  /** Why the last of these is over; undefined while one of them is not. */
  #lastOver(begun: readonly Delivery<ClaimedItem>[]): RunOver | undefined {
    return begun.every((delivery) => this.#overs.has(delivery)) ? this.#overs.get(begun.at(-1)!) : undefined
  }

  over(delivery: Delivery<ClaimedItem>): RunOver | undefined {
    return this.#overs.get(delivery)
  }

  /** Throws if this one is over, or late, though the batch returned. */
  check(delivery: Delivery<ClaimedItem>): void {
    const over = this.over(delivery)
    if (over !== undefined) throw over
    checkLate(delivery.item, this.#clock.monotonic() - this.#startedMs, this.#now())
  }
}
