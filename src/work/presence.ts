import type { Clock } from '../core/clock.js'
import type { Ms } from '../core/time.js'
import type { Ledger, Worker } from '../ports/ledger.js'

/** How often a process tells that it is there, though it holds nothing: heartbeats tell it otherwise. */
const EVERY_MS: Ms = 15_000

/** So long a stop waits for the backend to hear of it: little beside the time that a stop may take. */
const LEAVE_MS: Ms = 250

/** Tells the backend who works on it, so that people can see a worker that is idle. It rides on the looks at the queues. */
export class Presence {
  readonly #ledger: Ledger
  readonly #told: () => Worker
  readonly #leaseMs: Ms
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  #toldMs = Number.NEGATIVE_INFINITY
  #toldTypes: readonly string[] = []
  #telling: Promise<unknown> = Promise.resolve()
  #hasBegun = false

  constructor(ledger: Ledger, told: () => Worker, leaseMs: Ms, clock: Clock, onError: (error: unknown) => void) {
    this.#ledger = ledger
    this.#clock = clock
    this.#told = told
    this.#leaseMs = leaseMs
    this.#onError = onError
  }

  /** A look at the queues is over. */
  looked(nowMs: Ms): void {
    // Where nobody can ask for workers, nobody needs to tell of them.
    if (this.#ledger.inspect === undefined) return
    const me = this.#told()
    // A type that it has learnt is told at once: until then its items seem to be known to no worker.
    if (nowMs - this.#toldMs < EVERY_MS && me.types === this.#toldTypes) return
    this.#toldMs = nowMs
    this.#toldTypes = me.types
    this.#telling = this.#ledger.extend([], this.#leaseMs, me).catch(this.#onError)
  }

  /** From here on heartbeats may tell of this process. */
  began(): void {
    this.#hasBegun = true
  }

  /**
   * It has stopped in order: nobody is to count on it any longer. A word that is still under way must not come after this one. A
   * backend that does not answer, or has been closed, holds nobody back and is no news: there the record grows old.
   */
  async left(): Promise<void> {
    if (!this.#hasBegun || this.#ledger.leave === undefined) return
    this.#hasBegun = false
    this.#toldMs = Number.NEGATIVE_INFINITY
    const patience = new AbortController()
    const told = this.#telling.then(() => this.#ledger.leave?.(this.#told().id)).catch(() => undefined)
    await Promise.race([told, this.#clock.sleep(LEAVE_MS, patience.signal).catch(() => undefined)])
    patience.abort()
  }
}
