import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock } from '../../core/time/clock.js'
import { LazySignal } from '../../core/time/lazy-signal.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { Delivery } from './delivery.js'
import { SettleTimeoutError } from './errors.js'
import type { Feed } from './feed.js'

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

export type SettleResult = 'settled' | 'lost'

/** One try in flight: its own signal, and the caller that waits for it. */
class Try extends LazySignal {
  readonly dueAt: Ms
  fail: (error: unknown) => void = () => undefined
  constructor(dueAt: Ms) {
    super()
    this.dueAt = dueAt
  }
}

/**
 * Settles outcomes, each try with its own time and never with the run's signal: finished work is not thrown away because
 * a shutdown began. One timer serves all tries in flight, since they all have the same timeout and end in order.
 */
export class Settler<D, R> {
  readonly #clock: Clock
  readonly #feed: Feed<D, R>
  readonly #retry: SettleRetry
  readonly #onRetry: (delivery: Delivery<D>, error: unknown) => void
  readonly #inFlight = new Set<Try>()
  /** Outcomes that wait for their next try. */
  readonly #sleepers = new Set<() => void>()
  #isEnding = false
  #cancelTimer: (() => void) | undefined

  constructor(
    clock: Clock,
    feed: Feed<D, R>,
    retry: SettleRetry,
    onRetry: (delivery: Delivery<D>, error: unknown) => void,
  ) {
    this.#clock = clock
    this.#feed = feed
    this.#retry = retry
    this.#onRetry = onRetry
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

  /** Rejects with the last error once the tries are used up. */
  async settle(delivery: Delivery<D>, outcome: R): Promise<SettleResult> {
    for (let tries = 1; ; tries += 1) {
      const isLast = this.#isEnding
      delivery.settleTries = tries
      try {
        const answer = this.#once(delivery, outcome)
        return typeof answer === 'string' ? answer : await answer
      } catch (error) {
        if (delivery.state === 'lost') return 'lost'
        if (isLast || tries >= this.#retry.attempts) throw error
        this.#onRetry(delivery, error)
        const waitMs = doublingDelay(tries - 1, this.#retry)
        await this.#sleep(waitMs)
      }
    }
  }

  /** A set and not the listeners of one signal: as many wait as there are outcomes while a backend is away. */
  #sleep(ms: Ms): Promise<void> {
    if (this.#isEnding) return Promise.resolve()
    return new Promise((resolve) => {
      const wakeUp = () => {
        this.#sleepers.delete(wakeUp)
        cancel()
        resolve()
      }
      const cancel = this.#clock.after(ms, wakeUp)
      this.#sleepers.add(wakeUp)
    })
  }

  #once(delivery: Delivery<D>, outcome: R): MaybePromise<SettleResult> {
    const one = new Try(this.#clock.monotonic() + this.#retry.timeoutMs)
    const answer = this.#feed.settle(delivery, outcome, one)
    if (typeof answer === 'string' || this.#retry.timeoutMs === Infinity) return answer
    return this.#inTime(one, answer)
  }

  /** The answer, or a failure when it does not come in time. */
  #inTime(one: Try, answer: Promise<SettleResult>): Promise<SettleResult> {
    this.#inFlight.add(one)
    if (this.#cancelTimer === undefined) this.#arm(this.#retry.timeoutMs)
    return new Promise((resolve, reject) => {
      one.fail = reject
      answer.then(
        (result) => {
          this.#inFlight.delete(one)
          resolve(result)
        },
        (error) => {
          this.#inFlight.delete(one)
          reject(error)
        },
      )
    })
  }

  #arm(ms: Ms): void {
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#cancelTimer = undefined
      const now = this.#clock.monotonic()
      for (const one of this.#inFlight) {
        if (one.dueAt > now) {
          this.#arm(one.dueAt - now)
          return
        }
        this.#inFlight.delete(one)
        const error = new SettleTimeoutError(this.#retry.timeoutMs)
        one.abort(error)
        one.fail(error)
      }
    })
  }
}
