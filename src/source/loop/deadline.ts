import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'

/** A moment that can be brought forward and never put off: the shortest time given decides. */
export class Deadline {
  /** Resolves when the moment has come. */
  readonly reached: Promise<void>
  readonly #clock: Clock
  #resolve: () => void = () => undefined
  #at: Ms = Infinity
  #givenMs: Ms = Infinity
  #cancel: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.reached = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** The time that was given when it was last set. */
  get givenMs(): Ms {
    return this.#givenMs
  }

  /** At the latest in `ms`. */
  within(ms: Ms): void {
    const at = this.#clock.monotonic() + ms
    if (at >= this.#at) return
    this.#at = at
    this.#givenMs = ms
    this.#cancel?.()
    // Now is now: a timer of 0 ms would let others go first.
    if (ms <= 0) this.#resolve()
    else if (ms < Infinity) this.#cancel = this.#clock.after(ms, this.#resolve)
  }

  close(): void {
    this.#cancel?.()
  }
}
