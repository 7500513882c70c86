import { AsyncLocalStorage } from 'node:async_hooks'
import type { Doer, DoerTaskOptions } from '../core/doer/doer.js'
import { MillraceError } from '../core/error.js'

/** How many runs of one system may have lent their places at the same time. */
const MOST_LENT = 1_000

/** A handler waits for other work, and so many do so already that one more would be a leak. */
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
 * Who has lent a place, and for what. One for each system. Parents stand before their children in a queue, and each that lends
 * its place lets another one begin: left to themselves, all of them would begin before the first child. So types that lend are closed
 * while half of the places that may be lent are. A type that a lent run waits for stays open, or nothing would go on.
 */
export class Lending {
  count = 0
  readonly #lenders = new Set<string>()
  readonly #awaited = new Map<string, number>()

  get isHalfway(): boolean {
    return this.count >= MOST_LENT / 2
  }

  isClosedTo(type: string): boolean {
    return this.isHalfway && this.#lenders.has(type) && !this.#awaited.has(type)
  }

  lend(lender: string): void {
    this.count += 1
    this.#lenders.add(lender)
  }

  /** A lent run begins (1) or ends (-1) to wait for an item of this type. */
  awaited(type: string, by: 1 | -1): void {
    const count = (this.#awaited.get(type) ?? 0) + by
    if (count === 0) this.#awaited.delete(type)
    else this.#awaited.set(type, count)
  }
}

export interface PlaceOptions {
  /** Of what runs in it. */
  readonly type: string
  readonly doer: Doer
  readonly hints: DoerTaskOptions
  readonly lending: Lending
  /** Gives the place that it was started in back to the doer. */
  readonly leave: () => void
  /** The run waits without a place (true), or runs again (false). */
  readonly moved: (isLent: boolean) => void
}

const currentPlace = new AsyncLocalStorage<Place>()

/** Runs a handler in its place, so that a wait inside knows whose it is; one without a place does not have its caller's. */
export function inPlace<T>(place: Place | undefined, handle: () => T): T {
  if (place !== undefined) return currentPlace.run(place, handle)
  return isInPlace() ? currentPlace.exit(handle) : handle()
}

/** The caller is a handler that has, or has lent, a place. */
export function isInPlace(): boolean {
  return currentPlace.getStore() !== undefined
}

/**
 * Waits for other work. A run that does so lends its place meanwhile: otherwise a few parents that await their children would
 * hold all places that those need, and wait for ever.
 */
export function lendingPlace<T>(wait: Promise<T>, awaitedType: string): Promise<T> {
  const place = currentPlace.getStore()
  return place === undefined ? wait : place.during(wait, awaitedType)
}

/** The place of one run in its doer: held while the handler runs, lent while it waits for other work. */
export class Place {
  readonly #o: PlaceOptions
  #leave: (() => void) | undefined
  #hasEnded = false
  #isLent = false
  /** Waits for other work that go on now. */
  #waits = 0

  constructor(options: PlaceOptions) {
    this.#o = options
    this.#leave = options.leave
  }

  async during<T>(wait: Promise<T>, awaitedType: string): Promise<T> {
    if (this.#hasEnded) return wait
    const { lending } = this.#o
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
      // While other waits of the same run go on it stays lent: what they wait for may need it.
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
    this.#o.lending.lend(this.#o.type)
    this.#o.moved(true)
    this.#leavePlace()
  }

  #unlend(): void {
    this.#isLent = false
    this.#o.lending.count -= 1
  }

  #leavePlace(): void {
    const leave = this.#leave
    this.#leave = undefined
    leave?.()
  }

  /** Before all that wait for a place: this run has begun already. */
  #takeBack(): Promise<void> {
    return new Promise((back) => {
      const { doer, hints } = this.#o
      const task = () =>
        new Promise<void>((leave) => {
          this.#taken(leave)
          back()
        })
      try {
        doer.do(task, { ...hints, priority: Infinity, createdAt: 0 })
      } catch {
        // A doer that refuses: the run has begun, and goes on without a place.
        this.#taken(() => undefined)
        back()
      }
    })
  }

  #taken(leave: () => void): void {
    // It ended, or began another wait, or has its place again, while it waited for this one.
    if (this.#hasEnded || this.#waits > 0 || !this.#isLent) {
      leave()
      return
    }
    this.#leave = leave
    this.#unlend()
    this.#o.moved(false)
  }
}
