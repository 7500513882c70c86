import { AsyncLocalStorage } from 'node:async_hooks'
import type { Doer } from '../../core/doer/doer.js'
import { MillraceError } from '../../core/error.js'
import { processWide } from '../../core/process/process-wide.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { hintsOf } from './doers.js'

/** How many runs of one system may have lent their places at the same time. */
const MOST_LENT = 1_000

/** A handler waits for other work while so many others do that one more would be a leak. */
class TooManyWaitingRunsError extends MillraceError {
  constructor() {
    super(
      'TOO_MANY_WAITING_RUNS',
      `${MOST_LENT} handlers of this process wait for other work already, each with its memory and its lease. ` +
        'Return ctx.queue(child).next(rest) instead of awaiting a child in the handler: what comes next then waits in the backend.',
      { facts: { most: MOST_LENT } },
    )
  }
}

/**
 * The places of one system, and which of them are lent. Parents are before their children in a queue, and each parent that lends
 * its place lets another one start: all of them would start before the first child. So once half of the places that may be lent
 * are lent, no item of a type that lends is claimed, unless a lent run waits for that type.
 */
export class Lending {
  count = 0
  /** Of items that run before the loop has made their deliveries. */
  readonly #places = new WeakMap<ClaimedItem, Place>()
  readonly #lenders = new Set<string>()
  readonly #awaited = new Map<string, number>()

  get isHalfway(): boolean {
    return this.count >= MOST_LENT / 2
  }

  isClosedTo(type: string): boolean {
    return this.isHalfway && this.#lenders.has(type) && !this.#awaited.has(type)
  }

  /** The place that a run lends while it waits. Undefined: there is no need to. */
  placeOf({ place, item }: Delivery<ClaimedItem>): Place | undefined {
    return place instanceof Place ? place : this.#places.get(item)
  }

  /**
   * Makes the place of a run that is about to start, whose end is to be told to it. Undefined: where the number of places is
   * unlimited or unknown, there is nothing to lend.
   */
  open({ envelope }: ClaimedItem, doer: Doer, holder: PlaceHolder): Place | undefined {
    return Number.isFinite(doer.concurrency) ? new Place(envelope, doer, this, holder) : undefined
  }

  /** The same for an item whose delivery is still to be made. */
  openFor(item: ClaimedItem, doer: Doer, leave: () => void): () => void {
    const place = this.open(item, doer, { leave, moved: () => undefined })
    if (place === undefined) return leave
    this.#places.set(item, place)
    return () => place.end()
  }

  lend(lender: string): void {
    this.count += 1
    this.#lenders.add(lender)
  }

  /** A lent run starts (1) or stops (-1) to wait for an item of this type. */
  awaited(type: string, by: 1 | -1): void {
    const count = (this.#awaited.get(type) ?? 0) + by
    if (count === 0) this.#awaited.delete(type)
    else this.#awaited.set(type, count)
  }
}

/** The run that a place was made for. */
export interface PlaceHolder {
  /** Gives the place that it was started in back to the doer. */
  leave(): void
  /** The run waits without a place (true), or runs again (false). */
  moved(isLent: boolean): void
}

const currentPlace = processWide('current-place', () => new AsyncLocalStorage<Place>())

/** Runs a handler in its place, so that a wait inside finds it. A handler without a place does not get its caller's. */
export function inPlace<T>(place: Place | undefined, handle: () => T): T {
  if (place !== undefined) return currentPlace().run(place, handle)
  return isInPlace() ? currentPlace().exit(handle) : handle()
}

/** Whether the caller is a handler that has, or has lent, a place. */
export function isInPlace(): boolean {
  return currentPlace().getStore() !== undefined
}

/**
 * Waits for other work. A run that waits lends its place meanwhile: otherwise a few parents that await their children would
 * hold all the places that the children need, and wait forever.
 */
export function lendingPlace<T>(wait: Promise<T>, awaitedType: string): Promise<T> {
  const place = currentPlace().getStore()
  return place === undefined ? wait : place.during(wait, awaitedType)
}

/** The place of one run in its doer: held while the handler runs, lent while it waits for other work. */
export class Place {
  /** Of what runs in it. */
  readonly #envelope: Envelope
  readonly #doer: Doer
  readonly #lending: Lending
  readonly #holder: PlaceHolder
  /** Gives the place that it has now back. Undefined: the one that it was started in. */
  #leave: (() => void) | undefined
  #hasPlace = true
  #hasEnded = false
  #isLent = false
  /** How many waits for other work are open. */
  #waits = 0

  constructor(envelope: Envelope, doer: Doer, lending: Lending, holder: PlaceHolder) {
    this.#envelope = envelope
    this.#doer = doer
    this.#lending = lending
    this.#holder = holder
  }

  async during<T>(wait: Promise<T>, awaitedType: string): Promise<T> {
    if (this.#hasEnded) return wait
    const lending = this.#lending
    if (!this.#isLent) {
      if (lending.count >= MOST_LENT) {
        wait.catch(() => undefined)
        throw new TooManyWaitingRunsError()
      }
      this.#lend()
    }
    this.#waits += 1
    lending.awaited(awaitedType, 1)
    try {
      return await wait
    } finally {
      this.#waits -= 1
      lending.awaited(awaitedType, -1)
      // While other waits of the same run are open it stays lent: what they wait for may need the place.
      if (this.#waits === 0 && this.#isLent) await this.#takeBack()
    }
  }

  /** The handler has ended. */
  end(): void {
    this.#hasEnded = true
    if (this.#isLent) this.#unlend()
    this.#leavePlace()
  }

  #lend(): void {
    this.#isLent = true
    this.#lending.lend(this.#envelope.type)
    this.#holder.moved(true)
    this.#leavePlace()
  }

  #unlend(): void {
    this.#isLent = false
    this.#lending.count -= 1
  }

  #leavePlace(): void {
    if (!this.#hasPlace) return
    this.#hasPlace = false
    if (this.#leave === undefined) this.#holder.leave()
    else this.#leave()
  }

  /** Before all others that wait for a place: this run has started already. */
  #takeBack(): Promise<void> {
    return new Promise((back) => {
      const task = () =>
        new Promise<void>((leave) => {
          this.#taken(leave)
          back()
        })
      try {
        this.#doer.do(task, { ...hintsOf(this.#envelope), priority: Infinity, createdAt: 0 })
      } catch {
        // The doer refuses it. The run has started, and continues without a place.
        this.#taken(() => undefined)
        back()
      }
    })
  }

  #taken(leave: () => void): void {
    // Meanwhile the run ended, started another wait, or has its place again.
    if (this.#hasEnded || this.#waits > 0 || !this.#isLent) {
      leave()
      return
    }
    this.#leave = leave
    this.#hasPlace = true
    this.#unlend()
    this.#holder.moved(false)
  }
}
