import type { Clock } from '../../../core/clock.js'
import { MillraceError } from '../../../core/error.js'
import { keepAlive } from '../../../core/keep-alive.js'
import type { Ms } from '../../../core/time.js'

/** A transaction waited too long for a connection. */
export class NoConnectionError extends MillraceError {
  constructor(max: number, waitedMs: Ms) {
    super(
      'NO_CONNECTION',
      `${max} transactions have been open for ${waitedMs} ms, so that this one got no connection. Look for transactions that ` +
        'wait for each other, or raise maxConnections.',
      { facts: { max, waitedMs } },
    )
  }
}

/** Bounds how many transactions are open at once, so that some connections are left for single reads. First come, first served. */
export class Slots {
  readonly #clock: Clock
  readonly #max: number
  readonly #patienceMs: Ms
  #taken = 0
  readonly #waiting = new Set<() => void>()

  constructor(clock: Clock, max: number, patienceMs: Ms) {
    this.#clock = clock
    this.#max = max
    this.#patienceMs = patienceMs
  }

  /** Resolves with the function that gives it back. */
  async take(): Promise<() => void> {
    if (this.#taken >= this.#max) await this.#wait()
    else this.#taken += 1
    return () => this.#pass()
  }

  /** Hands the slot on, so that nobody who comes later overtakes. */
  #pass(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#taken -= 1
    else next()
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      // Our timers let a process end; this one has promised an answer.
      const release = this.#clock.isReal === true ? keepAlive() : () => undefined
      const cancel = this.#clock.after(this.#patienceMs, () => {
        this.#waiting.delete(go)
        release()
        reject(new NoConnectionError(this.#max, this.#patienceMs))
      })
      const go = (): void => {
        cancel()
        release()
        this.#waiting.delete(go)
        resolve()
      }
      this.#waiting.add(go)
    })
  }
}
