import type { Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Admission, Carry } from '../source/loop/admission.js'
import { Delivery } from '../source/loop/delivery.js'
import type { Feed, Pulled } from '../source/loop/feed.js'
import type { WorkSettling } from './work-settling.js'

/** An item that this process holds from birth, on its way from its acceptance to its turn. */
interface Held {
  readonly item: Claimed
  readonly askedMs: Ms
  /** Called when this process holds it no longer. */
  readonly left: () => void
  /** Present once the loop carries it: from then on its lease is kept alive. */
  delivery?: Delivery<Claimed>
  /** Present once its turn has come: told when its handler has ended. */
  executed?: () => void
}

/**
 * The way of work that skips the queue: its own process holds it from birth, with the same heartbeat, settlement and
 * draining as everything else, because it goes through the same loop; it runs when its doer has a place for it.
 */
export class Direct {
  readonly #ledger: Feed<Claimed, WorkSettling>
  readonly #monotonic: () => Ms
  readonly #onError: (error: unknown) => void
  /** Everything between its acceptance and its start. */
  readonly #held = new Map<Claimed, Held>()
  /** What to call when the loop carries it no longer. */
  readonly #lefts = new WeakMap<Delivery<Claimed>, () => void>()
  #given: Held[] = []
  #carry: Carry<Claimed> | undefined
  #pulling: { readonly resolve: (pulled: Pulled<Claimed>) => void; readonly reject: (e: unknown) => void } | undefined
  #heard: AbortSignal | undefined
  #isEnding = false

  constructor(ledger: Feed<Claimed, WorkSettling>, monotonic: () => Ms, onError: (error: unknown) => void) {
    this.#ledger = ledger
    this.#monotonic = monotonic
    this.#onError = onError
  }

  /** Takes an item that is ours, at most since `askedMs`: it is kept alive until its turn comes. */
  hold(item: Claimed, askedMs: Ms, left: () => void): void {
    const held: Held = { item, askedMs, left }
    this.#held.set(item, held)
    this.#given.push(held)
    // A run that ends fetches nothing any more, so that nobody would ever carry it.
    if (this.#isEnding) this.#giveBack()
    else this.#flush()
  }

  /** Its turn has come. Resolves when its handler has ended, settled or not, and at once if it was given back meanwhile. */
  run(item: Claimed): Promise<void> {
    const held = this.#held.get(item)
    if (held === undefined) return Promise.resolve()
    return new Promise((executed) => {
      held.executed = executed
      this.#start(held)
    })
  }

  /** The ledger's feed with another way in. */
  feed(): Feed<Claimed, WorkSettling> {
    const ledger = this.#ledger
    return {
      pull: (_max, signal) =>
        new Promise((resolve, reject) => {
          if (signal.aborted) {
            reject(signal.reason)
            return
          }
          this.#pulling = { resolve, reject }
          this.#listen(signal)
          this.#flush()
        }),
      settle: ledger.settle,
      release: (deliveries, delayMs) => {
        for (const { item } of deliveries) this.#leave(item)
        return ledger.release(deliveries, delayMs)
      },
      ...(ledger.lease === undefined ? {} : { lease: ledger.lease }),
    }
  }

  /** No policy: whoever hands an item in has asked a doer for a place already. */
  admission(taken: (delivery: Delivery<Claimed>) => void): Admission<Claimed> {
    return {
      appetite: () => 512,
      left: (delivery) => this.#lefts.get(delivery)?.(),
      offer: (delivery) => {
        const held = this.#held.get(delivery.item)
        taken(delivery)
        if (held !== undefined) {
          held.delivery = delivery
          this.#lefts.set(delivery, held.left)
          this.#start(held)
        }
        return 'taken'
      },
      attach: (given) => {
        this.#carry = given
        this.#isEnding = false
      },
      onRoom: () => () => undefined,
      finish: () => undefined,
      drain: () => {
        const waiting = [...this.#held.values()].flatMap(({ delivery }) => delivery ?? [])
        for (const { item } of waiting) this.#leave(item)
        this.#end()
        return waiting
      },
    }
  }

  /** Once its turn has come and the loop carries it, whichever is the later. */
  #start({ item, delivery, executed }: Held): void {
    if (delivery === undefined || executed === undefined) return
    this.#held.delete(item)
    void this.#carry!([delivery], executed)
  }

  /** It will not run here: its place in the doer is free. */
  #leave(item: Claimed): void {
    const held = this.#held.get(item)
    this.#held.delete(item)
    held?.executed?.()
  }

  /** What the loop does not carry yet and will not carry any more. */
  #giveBack(): void {
    const given = this.#given
    this.#given = []
    if (given.length === 0) return
    for (const { item, left } of given) {
      this.#leave(item)
      left()
    }
    const now = this.#monotonic()
    // If that fails it comes back when its lease lapses: late, not lost.
    this.#ledger.release(given.map(({ item, askedMs }) => new Delivery(item, now, askedMs))).catch(this.#onError)
  }

  #end(): void {
    this.#isEnding = true
    this.#giveBack()
  }

  /** One listener per run of the loop, not one per look. */
  #listen(signal: AbortSignal): void {
    if (this.#heard === signal) return
    this.#heard = signal
    const onAbort = () => {
      const pulling = this.#pulling
      this.#pulling = undefined
      this.#end()
      pulling?.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
  }

  #flush(): void {
    if (this.#pulling === undefined || this.#given.length === 0) return
    const given = this.#given
    this.#given = []
    const pulling = this.#pulling
    this.#pulling = undefined
    const askedMs = Math.min(...given.map((one) => one.askedMs))
    pulling.resolve({ items: given.map(({ item }) => item), more: true, askedMs })
  }
}
