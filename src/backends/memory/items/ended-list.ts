import type { At, Ms } from '../../../core/time/time.js'
import { SlotList } from '../queue/slot-list.js'
import { NO_SLOT } from '../queue/time-list.js'

/** What has an end, and a weight. */
export interface Ended {
  /** Its place in the list; `NO_SLOT`: it has not ended. */
  endSlot: number
  /** A waiter was notified of its end and has not read it: it stays until then. 0: there is none. */
  awaitedUntil: At
}

/** A waiter that was notified and has not read by then has given up. */
const GRACE: Ms = 60_000

/** What has ended, the oldest first. Items whose waiters were just notified are kept apart until they are read. */
export class EndedList<T extends Ended> {
  readonly #order = new SlotList<T>(placed)
  readonly #awaited = new SlotList<T>(placed)

  enter(one: T): void {
    if (one.endSlot === NO_SLOT) one.endSlot = this.#listOf(one).append(one)
  }

  leave(one: T): void {
    if (one.endSlot === NO_SLOT) return
    const position = one.endSlot
    one.endSlot = NO_SLOT
    this.#listOf(one).remove(position)
  }

  /** A waiter is about to read it. */
  await(one: T, now: At): void {
    this.#move(one, now + GRACE)
  }

  /** It was read. */
  seen(one: T): void {
    if (one.awaitedUntil !== 0) this.#move(one, 0)
  }

  /** The oldest that no waiter is about to read. */
  oldest(now: At): T | undefined {
    for (let one = this.#awaited.first(); one !== undefined; one = this.#awaited.first()) {
      if (one.awaitedUntil > now) break
      this.seen(one)
    }
    return this.#order.first()
  }

  #move(one: T, awaitedUntil: At): void {
    const isListed = one.endSlot !== NO_SLOT
    this.leave(one)
    one.awaitedUntil = awaitedUntil
    if (isListed) this.enter(one)
  }

  #listOf({ awaitedUntil }: T): SlotList<T> {
    return awaitedUntil === 0 ? this.#order : this.#awaited
  }
}

function placed(one: Ended, position: number): void {
  one.endSlot = position
}
