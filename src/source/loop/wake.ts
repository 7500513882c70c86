import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'

/** A bell for one sleeper. A ring that comes while nobody sleeps is kept, so that no wake-up is lost between two looks. */
export class Wake {
  readonly #clock: Clock
  #rung = false
  #wakeUp: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ring(): void {
    if (this.#wakeUp === undefined) this.#rung = true
    else this.#wakeUp()
  }

  /** Forgets a ring that was kept: what it told of is about to be looked at. */
  reset(): void {
    this.#rung = false
  }

  /** Sleeps until the bell rings or `ms` have passed. */
  sleep(ms: Ms): Promise<void> {
    if (this.#rung) {
      this.#rung = false
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      const wakeUp = () => {
        this.#wakeUp = undefined
        cancel()
        resolve()
      }
      const cancel = this.#clock.after(ms, wakeUp)
      this.#wakeUp = wakeUp
    })
  }
}
