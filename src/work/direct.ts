import type { Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Admission, Carry } from '../source/loop/admission.js'
import type { Delivery } from '../source/loop/delivery.js'
import type { Feed, Pulled } from '../source/loop/feed.js'
import type { WorkSettling } from './runner.js'

/**
 * The way of work that skips the queue: its own process holds it from birth and runs it at once, with the same heartbeat,
 * settlement and draining as everything else, because it goes through the same loop.
 */
export class Direct {
  #given: { readonly item: Claimed; readonly askedMs: Ms; readonly executed: () => void }[] = []
  readonly #executed = new Map<Claimed, () => void>()
  #pulling: { readonly resolve: (pulled: Pulled<Claimed>) => void; readonly reject: (e: unknown) => void } | undefined
  #stopping: AbortSignal | undefined

  /** Runs an item that this process holds, at most since `askedMs`. Resolves when its handler has ended, settled or not. */
  run(item: Claimed, askedMs: Ms): Promise<void> {
    return new Promise((executed) => {
      this.#given.push({ item, askedMs, executed })
      this.#flush()
    })
  }

  /** The ledger's feed with another way in. */
  feed(ledger: Feed<Claimed, WorkSettling>): Feed<Claimed, WorkSettling> {
    return {
      pull: (_max, signal) =>
        new Promise((resolve, reject) => {
          this.#pulling = { resolve, reject }
          this.#listen(signal)
          this.#flush()
        }),
      settle: ledger.settle,
      release: (deliveries, delayMs) => {
        // Given back before it was offered: its place is free again.
        for (const { item } of deliveries) this.#leave(item)?.()
        return ledger.release(deliveries, delayMs)
      },
      ...(ledger.lease === undefined ? {} : { lease: ledger.lease }),
    }
  }

  /** No policy: whoever hands an item in has a place for it already. */
  admission(taken: (delivery: Delivery<Claimed>) => void): Admission<Claimed> {
    let carry: Carry<Claimed> | undefined
    return {
      appetite: () => 512,
      offer: (delivery) => {
        taken(delivery)
        void carry!([delivery], this.#leave(delivery.item))
        return 'taken'
      },
      attach: (given) => {
        carry = given
      },
      onRoom: () => () => undefined,
      finish: () => undefined,
      drain: () => [],
    }
  }

  #leave(item: Claimed): (() => void) | undefined {
    const executed = this.#executed.get(item)
    this.#executed.delete(item)
    return executed
  }

  /** One listener per run of the loop, not one per look. */
  #listen(signal: AbortSignal): void {
    if (this.#stopping === signal) return
    this.#stopping = signal
    signal.addEventListener('abort', () => this.#pulling?.reject(signal.reason), { once: true })
  }

  #flush(): void {
    if (this.#pulling === undefined || this.#given.length === 0) return
    const given = this.#given
    this.#given = []
    for (const { item, executed } of given) this.#executed.set(item, executed)
    const pulling = this.#pulling
    this.#pulling = undefined
    const askedMs = Math.min(...given.map((one) => one.askedMs))
    pulling.resolve({ items: given.map(({ item }) => item), more: true, askedMs })
  }
}
