import type { Clock } from './clock.js'
import type { Ms } from './time.js'

/** How long a chain of microtasks may go on before the event loop gets a turn. */
const LONGEST_MS: Ms = 4

/**
 * Lets the event loop turn while work never waits for anything outside the process. On a backend that answers
 * in microtasks (memory, SQLite) a busy loop would otherwise keep timers, sockets and signals waiting until it is idle.
 */
export class EventLoopTurns {
  readonly #clock: Clock
  /** The turn that was asked for and has not come. */
  #coming: Promise<void> | undefined
  #sinceMs: Ms = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Goes on when the event loop has had the turn that it is due. */
  async pass(): Promise<void> {
    for (let due = this.due(); due !== undefined; due = this.due()) await due
  }

  /** A promise to await before going on, when the event loop has been kept waiting for long enough. */
  due(): Promise<void> | undefined {
    if (this.#clock.turn === undefined) return undefined
    const nowMs = this.#clock.monotonic()
    if (this.#coming !== undefined) return nowMs - this.#sinceMs >= LONGEST_MS ? this.#coming : undefined
    this.#sinceMs = nowMs
    this.#coming = this.#clock.turn().then(() => {
      this.#coming = undefined
    })
    return undefined
  }
}
