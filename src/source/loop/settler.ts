import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock } from '../../core/time/clock.js'
import { LazySignal } from '../../core/time/lazy-signal.js'
import type { Ms } from '../../core/time/time.js'
import type { Delivery } from './delivery.js'
import { SettleTimeoutError } from './errors.js'
import type { Feed, SettleResult, SettleTry } from './feed.js'

/** How hard the loop tries to settle an outcome before it leaves it to a redelivery. */
export interface SettleRetry {
  /** Tries in all, the first included. `Infinity`: until the run ends. */
  readonly attempts: number
  /** Wait before the second try; doubles up to `maxMs`. */
  readonly baseMs: Ms
  readonly maxMs: Ms
  /** How long one try may take. `Infinity`: the feed itself ends a try. */
  readonly timeoutMs: Ms
}

/** What the settler reports. */
export interface SettlerEvents<D, R> {
  settled(delivery: Delivery<D>, outcome: R, result: SettleResult): void
  /** The tries are used up; this is the last error. */
  unsettled(delivery: Delivery<D>, outcome: R, error: unknown): void
  /** Another try follows. */
  failedTry(delivery: Delivery<D>, error: unknown): void
}

/**
 * Settles outcomes, each try with its own time and never with the run's signal: finished work is not thrown away because
 * a shutdown began. One timer serves all tries in flight, since they all have the same timeout and end in order.
 */
export class Settler<D, R> {
  readonly #clock: Clock
  readonly #feed: Feed<D, R>
  readonly #retry: SettleRetry
  readonly #events: SettlerEvents<D, R>
  /** Tries that have a time limit. */
  readonly #timed = new Set<Try<D, R>>()
  /** Outcomes that wait for their next try. A set and not the listeners of one signal: they are many while a backend is away. */
  readonly #sleepers = new Set<() => void>()
  #isEnding = false
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock, feed: Feed<D, R>, retry: SettleRetry, events: SettlerEvents<D, R>) {
    this.#clock = clock
    this.#feed = feed
    this.#retry = retry
    this.#events = events
  }

  /** The run is ending: every outcome that waits for another try gets it now, and it is the last one. */
  tryOnceMore(): void {
    this.#isEnding = true
    for (const wakeUp of [...this.#sleepers]) wakeUp()
  }

  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  /** Reports once, when it is settled, found lost, or abandoned. */
  settle(delivery: Delivery<D>, outcome: R, tries = 1): void {
    const { timeoutMs } = this.#retry
    const isTimed = timeoutMs !== Infinity
    const one = new Try<D, R>(this, delivery, outcome, this.#isEnding, tries)
    delivery.settleTries = tries
    if (isTimed) one.dueAt = this.#clock.monotonic() + timeoutMs
    try {
      this.#feed.settle(delivery, outcome, one)
    } catch (error) {
      one.failed(error)
    }
    if (!isTimed || one.isOver) return
    this.#timed.add(one)
    if (this.#cancelTimer === undefined) this.#arm(timeoutMs)
  }

  /** How a try ended: with a result, or with an error. */
  ended(one: Try<D, R>, result: SettleResult | undefined, error: unknown): void {
    this.#timed.delete(one)
    const { delivery, outcome, isLast, tries } = one
    if (result !== undefined) this.#events.settled(delivery, outcome, result)
    else if (delivery.state === 'lost') this.#events.settled(delivery, outcome, 'lost')
    else if (isLast || tries >= this.#retry.attempts) this.#events.unsettled(delivery, outcome, error)
    else {
      this.#events.failedTry(delivery, error)
      this.#later(doublingDelay(tries - 1, this.#retry), () => this.settle(delivery, outcome, tries + 1))
    }
  }

  #later(ms: Ms, go: () => void): void {
    if (this.#isEnding) {
      go()
      return
    }
    const wakeUp = () => {
      this.#sleepers.delete(wakeUp)
      cancel()
      go()
    }
    const cancel = this.#clock.after(ms, wakeUp)
    this.#sleepers.add(wakeUp)
  }

  #arm(ms: Ms): void {
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#cancelTimer = undefined
      const now = this.#clock.monotonic()
      for (const one of this.#timed) {
        if (one.dueAt > now) {
          this.#arm(one.dueAt - now)
          return
        }
        const error = new SettleTimeoutError(this.#retry.timeoutMs)
        one.abort(error)
        one.failed(error)
      }
    })
  }
}

/** One try to settle. Its first answer counts: once its time is up, what the feed still says of it is ignored. */
class Try<D, R> extends LazySignal implements SettleTry {
  readonly delivery: Delivery<D>
  readonly outcome: R
  readonly isLast: boolean
  readonly tries: number
  readonly #settler: Settler<D, R>
  dueAt: Ms = Infinity
  isOver = false

  constructor(settler: Settler<D, R>, delivery: Delivery<D>, outcome: R, isLast: boolean, tries: number) {
    super()
    this.#settler = settler
    this.delivery = delivery
    this.outcome = outcome
    this.isLast = isLast
    this.tries = tries
  }

  answered(result: SettleResult): void {
    if (this.isOver) return
    this.isOver = true
    this.#settler.ended(this, result, undefined)
  }

  failed(error: unknown): void {
    if (this.isOver) return
    this.isOver = true
    this.#settler.ended(this, undefined, error)
  }
}
