import { MillraceError } from '../../../core/error.js'
import type { Clock } from '../../../core/time/clock.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { Ms } from '../../../core/time/time.js'

/** A transaction waited too long for a connection. */
export class NoConnectionError extends MillraceError {
  constructor(max: number, waitedMs: Ms) {
    super(
      'NO_CONNECTION',
      `${max} transactions have been open for ${waitedMs} ms, so this one got no connection. Find transactions that ` +
        'wait for each other, or raise maxConnections.',
      { facts: { max, waitedMs } },
    )
  }
}

/** Bounds how many transactions are open at the same time, so some connections are left for single reads. First come, first served. */
export class Slots {
  readonly #clock: Clock
  readonly #max: number
  readonly #timeoutMs: Ms
  #taken = 0
  readonly #waiting = new Set<() => void>()

  constructor(clock: Clock, max: number, timeoutMs: Ms) {
    this.#clock = clock
    this.#max = max
    this.#timeoutMs = timeoutMs
  }

  /** Resolves with the function that gives it back. */
  async take(): Promise<() => void> {
    if (this.#taken >= this.#max) await this.#wait()
    else this.#taken += 1
    return () => this.#pass()
  }

  /** Hands the slot on, so a later caller cannot overtake. */
  #pass(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#taken -= 1
    else next()
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      // Our timers let a process end; this one has promised an answer.
      const release = this.#clock.isReal === true ? keepAlive() : () => undefined
      const cancel = this.#clock.after(this.#timeoutMs, () => {
        this.#waiting.delete(go)
        release()
        reject(new NoConnectionError(this.#max, this.#timeoutMs))
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
