import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/error.js'
import type { Ms } from '../core/time.js'

/** The shortest time that `stop()` and `close()` give the backend to answer enqueues; a longer `stopDrain` is given to them, too. */
const LEAST_PATIENCE_MS: Ms = 5_000

export const handedInPatienceMs = (stopDrain: Ms): Ms => Math.max(LEAST_PATIENCE_MS, stopDrain)

/** Enqueues that the backend did not answer before `stop()` or `close()` gave up waiting. */
export class UnansweredError extends MillraceError {
  constructor(count: number, afterMs: Ms, by: 'stop' | 'close') {
    const then =
      by === 'stop'
        ? 'They are sent for as long as this process lives and its backend is open.'
        : 'The backend is closed now, and what was not written is lost.'
    super(
      'ENQUEUES_UNANSWERED',
      `The backend did not answer ${count} ${count === 1 ? 'enqueue' : 'enqueues'} within ${afterMs} ms, so ${by}() waits no ` +
        `longer. ${then} Look at the backend, and enqueue them again under the same ids, which is harmless.`,
      { facts: { count, afterMs, by } },
    )
  }
}

const one = () => 1

/** Enqueues that were handed in and have not been answered by the backend. */
export class Unanswered {
  readonly #clock: Clock
  readonly #hold: () => () => void
  readonly #byId = new Map<string, Promise<unknown>>()
  /** What is waited for, and for how many enqueues each of them stands just now. */
  readonly #answers = new Map<Promise<unknown>, () => number>()
  #letGo: (() => void) | undefined

  /** `hold` is called when there is something to wait for; what it returns, when there is nothing left. */
  constructor(clock: Clock, hold: () => () => void) {
    this.#clock = clock
    this.#hold = hold
  }

  get isEmpty(): boolean {
    return this.#answers.size === 0
  }

  /** The enqueue of this id: a question about the item would come too early. */
  of(id: string): Promise<unknown> | undefined {
    return this.#byId.get(id)
  }

  /** Whether it is waited for: not answered, and not given up. */
  has(answer: Promise<unknown>): boolean {
    return this.#answers.has(answer)
  }

  add(id: string, answer: Promise<unknown>): void {
    this.#byId.set(id, answer)
    this.wait(answer, one)
  }

  /** Waits for more than one enqueue: for those that an `enqueueMany` has still to make. */
  wait(answer: Promise<unknown>, count: () => number): void {
    this.#answers.set(answer, count)
    this.#letGo ??= this.#hold()
  }

  answered(answer: Promise<unknown>, id?: string): void {
    // The same id may be on its way again.
    if (id !== undefined && this.#byId.get(id) === answer) this.#byId.delete(id)
    this.#answers.delete(answer)
    if (!this.isEmpty) return
    this.#letGo?.()
    this.#letGo = undefined
  }

  /** Waits for what was handed in so far, no longer than this. Yields how many were given up: they are not waited for again. */
  async settled(ms: Ms): Promise<number> {
    const open = [...this.#answers.keys()]
    if (open.length === 0) return 0
    const patience = new AbortController()
    await Promise.race([Promise.allSettled(open), this.#clock.sleep(ms, patience.signal).catch(() => undefined)])
    patience.abort()
    let count = 0
    for (const answer of open) {
      count += this.#answers.get(answer)?.() ?? 0
      this.answered(answer)
    }
    return count
  }
}
