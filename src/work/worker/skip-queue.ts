import { BufferFullError } from '../../core/group-commit.js'
import { RoomSignal } from '../../core/time/room-signal.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Admission, RunDeliveries } from '../../source/loop/admission.js'
import { Delivery } from '../../source/loop/delivery.js'
import type { Feed, Pulled } from '../../source/loop/feed.js'
import type { RunPendingSettlement } from '../settle/pending-settlement.js'

/** An item that this process has leased since its enqueue, and that has not started. */
interface Held {
  readonly item: ClaimedItem
  readonly askedMs: Ms
  /** Called when this process holds it no longer. */
  readonly left: () => void
  /** Present once the loop has it: from then on its lease is extended. */
  delivery?: Delivery<ClaimedItem>
  /** Present once its turn has come: called when its handler has ended. */
  executed?: () => void
}

/**
 * Runs work that skips the queue: the process that enqueues it has its lease from the start. It goes through the same loop as
 * everything else, with the same heartbeats, settlements and draining, and runs when its doer has a place for it.
 */
export class SkipQueueRuns {
  readonly #ledger: Feed<ClaimedItem, RunPendingSettlement>
  readonly #monotonic: () => Ms
  readonly #onError: (error: unknown) => void
  /** Accepted and not started. */
  readonly #held = new Map<ClaimedItem, Held>()
  /** What to call when it leaves the loop. */
  readonly #lefts = new WeakMap<Delivery<ClaimedItem>, () => void>()
  #given: Held[] = []
  #carry: RunDeliveries<ClaimedItem> | undefined
  #pulling:
    | { readonly resolve: (pulled: Pulled<ClaimedItem>) => void; readonly reject: (e: unknown) => void }
    | undefined
  #listenedTo: AbortSignal | undefined
  #isEnding = false

  constructor(ledger: Feed<ClaimedItem, RunPendingSettlement>, monotonic: () => Ms, onError: (error: unknown) => void) {
    this.#ledger = ledger
    this.#monotonic = monotonic
    this.#onError = onError
  }

  /** Takes an item that is leased since `askedMs` at most: its lease is extended until its turn comes. */
  hold(item: ClaimedItem, askedMs: Ms, left: () => void): void {
    const held: Held = { item, askedMs, left }
    this.#held.set(item, held)
    this.#given.push(held)
    // A loop that ends pulls nothing any more.
    if (this.#isEnding) this.#giveBack()
    else this.#flush()
  }

  /** Its turn has come. Resolves when its handler has ended, settled or not, and immediately if the item was returned meanwhile. */
  run(item: ClaimedItem): Promise<void> {
    const held = this.#held.get(item)
    if (held === undefined) return Promise.resolve()
    return new Promise((executed) => {
      held.executed = executed
      this.#start(held)
    })
  }

  /** The ledger's feed, with these items instead of claims. */
  feed(): Feed<ClaimedItem, RunPendingSettlement> {
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

  /** No policy: the item has a place in its doer already. */
  admission(taken: (delivery: Delivery<ClaimedItem>) => void): Admission<ClaimedItem> {
    return {
      capacity: () => 512,
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

  /** Starts it once its turn has come and the loop has it. */
  #start({ item, delivery, executed }: Held): void {
    if (delivery === undefined || executed === undefined) return
    this.#held.delete(item)
    this.#carry!([delivery], executed)
  }

  /** It will not run here: its place in the doer is free. */
  #leave(item: ClaimedItem): void {
    const held = this.#held.get(item)
    this.#held.delete(item)
    held?.executed?.()
  }

  /** Returns what the loop has not pulled and will not pull any more. */
  #giveBack(): void {
    const given = this.#given
    this.#given = []
    if (given.length === 0) return
    for (const { item, left } of given) {
      this.#leave(item)
      left()
    }
    const now = this.#monotonic()
    // If that fails, the item is delivered again when its lease lapses: late, not lost.
    this.#ledger.release(given.map(({ item, askedMs }) => new Delivery(item, now, askedMs))).catch(this.#onError)
  }

  #end(): void {
    this.#isEnding = true
    this.#giveBack()
  }

  /** One listener per run of the loop, not one per pull. */
  #listen(signal: AbortSignal): void {
    if (this.#listenedTo === signal) return
    this.#listenedTo = signal
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

/** How many items that skip the queue a process holds at most. */
const MOST_HELD = 1_000

/**
 * Limits the work that skips the queue: this process holds all of it, in memory and with leases. Beyond the limit, an enqueue
 * waits until some of it has ended.
 */
export class SkipQueueRoom {
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #held = 0
  readonly #room = new RoomSignal(() => this.#waiting.length > this.#maxWaiting / 2)

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  get isFull(): boolean {
    return this.#held >= MOST_HELD
  }

  /** Undefined where there is room, otherwise what to await first. Throws if too many wait already. */
  enter(): Promise<void> | undefined {
    if (!this.isFull) {
      this.#held += 1
      return undefined
    }
    if (this.#waiting.length >= this.#maxWaiting) {
      throw new BufferFullError('maxUnsent', this.#maxWaiting, this.#waiting.length, 1, {
        waits: `wait beside the ${MOST_HELD} that skip the queue already`,
        because: 'they arrive faster than they run',
      })
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  left(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#held -= 1
    else next()
    this.#room.left()
  }

  /** Undefined where few wait, otherwise a promise of that. */
  whenRoom(): Promise<void> | undefined {
    return this.#room.whenRoom()
  }
}
