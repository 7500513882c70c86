import type { Clock } from '../../core/clock.js'
import { LazySignal } from '../../core/lazy-signal.js'
import type { Maybe, Ms } from '../../core/time.js'
import type { Delivery } from './delivery.js'
import { SettleTimeoutError } from './errors.js'
import type { Feed } from './feed.js'

/** How hard the loop tries to settle an outcome before it leaves it to a redelivery. */
export interface SettlePatience {
  /** Tries in all, the first included. `Infinity`: until the run ends. */
  readonly attempts: number
  /** Wait before the second try; doubles up to `maxMs`. */
  readonly baseMs: Ms
  readonly maxMs: Ms
  /** How long one try may take. `Infinity`: the feed itself sees to it that a try ends. */
  readonly timeoutMs: Ms
}

export type SettleWord = 'settled' | 'lost'

/** One try under way: its own signal, and who waits for it. */
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
 * a shutdown began. One timer serves all tries under way, since they all have the same patience and end in order.
 */
export class Settler<D, R> {
  readonly #clock: Clock
  readonly #feed: Feed<D, R>
  readonly #patience: SettlePatience
  readonly #onRetry: (delivery: Delivery<D>, error: unknown) => void
  readonly #underWay = new Set<Try>()
  /** Those who wait for their next try. */
  readonly #sleepers = new Set<() => void>()
  #isHurried = false
  #cancelTimer: (() => void) | undefined

  constructor(
    clock: Clock,
    feed: Feed<D, R>,
    patience: SettlePatience,
    onRetry: (delivery: Delivery<D>, error: unknown) => void,
  ) {
    this.#clock = clock
    this.#feed = feed
    this.#patience = patience
    this.#onRetry = onRetry
  }

  /** The run is ending: whoever waits for another try takes it now, and it is the last. */
  hurry(): void {
    this.#isHurried = true
    for (const wakeUp of [...this.#sleepers]) wakeUp()
  }

  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  /** Rejects with the last error once the tries are used up. */
  async settle(delivery: Delivery<D>, outcome: R): Promise<SettleWord> {
    for (let tries = 1; ; tries += 1) {
      const isLast = this.#isHurried
      delivery.settleTries = tries
      try {
        const answer = this.#once(delivery, outcome)
        return typeof answer === 'string' ? answer : await answer
      } catch (error) {
        if (delivery.state === 'lost') return 'lost'
        if (isLast || tries >= this.#patience.attempts) throw error
        this.#onRetry(delivery, error)
        const waitMs = Math.min(this.#patience.maxMs, this.#patience.baseMs * 2 ** (tries - 1))
        await this.#sleep(waitMs)
      }
    }
  }

  /** A set and not the listeners of one signal: as many wait as there are outcomes while a backend is away. */
  #sleep(ms: Ms): Promise<void> {
    if (this.#isHurried) return Promise.resolve()
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

  #once(delivery: Delivery<D>, outcome: R): Maybe<SettleWord> {
    const one = new Try(this.#clock.monotonic() + this.#patience.timeoutMs)
    const answer = this.#feed.settle(delivery, outcome, one)
    if (typeof answer === 'string' || this.#patience.timeoutMs === Infinity) return answer
    return this.#inTime(one, answer)
  }

  /** The answer, or a failure when it does not come in time. */
  #inTime(one: Try, answer: Promise<SettleWord>): Promise<SettleWord> {
    this.#underWay.add(one)
    if (this.#cancelTimer === undefined) this.#arm(this.#patience.timeoutMs)
    return new Promise((resolve, reject) => {
      one.fail = reject
      answer.then(
        (word) => {
          this.#underWay.delete(one)
          resolve(word)
        },
        (error) => {
          this.#underWay.delete(one)
          reject(error)
        },
      )
    })
  }

  #arm(ms: Ms): void {
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#cancelTimer = undefined
      const now = this.#clock.monotonic()
      for (const one of this.#underWay) {
        if (one.dueAt > now) {
          this.#arm(one.dueAt - now)
          return
        }
        this.#underWay.delete(one)
        const error = new SettleTimeoutError(this.#patience.timeoutMs)
        one.abort(error)
        one.fail(error)
      }
    })
  }
}
