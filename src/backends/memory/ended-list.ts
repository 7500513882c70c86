import type { At, Ms } from '../../core/time.js'
import { Fifo } from './fifo.js'
import { NO_SLOT } from './lane.js'

/** What has an end, and a weight. */
export interface Ended {
  /** Its place in the list; `NO_SLOT`: it has not ended. */
  endSlot: number
  /** Somebody who waits was told of its end and has not read it: it stays until then. 0: nobody. */
  awaitedUntil: At
}

/** Who was told of an end and does not come for it has given up by then. */
const GRACE: Ms = 60_000

/** What has ended, the oldest first. What somebody has just been told of stands apart until it was read. */
export class EndedList<T extends Ended> {
  readonly #order = new Fifo<T>(placed)
  readonly #awaited = new Fifo<T>(placed)

  enter(one: T): void {
    if (one.endSlot === NO_SLOT) one.endSlot = this.#listOf(one).append(one)
  }

  leave(one: T): void {
    if (one.endSlot === NO_SLOT) return
    const position = one.endSlot
    one.endSlot = NO_SLOT
    this.#listOf(one).remove(position)
  }

  /** Somebody who waits for it comes to read it. */
  await(one: T, now: At): void {
    this.#move(one, now + GRACE)
  }

  /** It was read. */
  seen(one: T): void {
    if (one.awaitedUntil !== 0) this.#move(one, 0)
  }

  /** The oldest that nobody waits for. */
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

  #listOf({ awaitedUntil }: T): Fifo<T> {
    return awaitedUntil === 0 ? this.#order : this.#awaited
  }
}

function placed(one: Ended, position: number): void {
  one.endSlot = position
}
