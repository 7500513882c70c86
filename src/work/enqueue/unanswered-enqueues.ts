import { MillraceError } from '../../core/error.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { Acceptance } from './acceptance.js'

/** The shortest time that `stop()` and `close()` give the backend to answer enqueues; `stopDrain` may make it longer. */
const LEAST_TIMEOUT_MS: Ms = 5_000

export const enqueueTimeoutMs = (stopDrain: Ms): Ms => Math.max(LEAST_TIMEOUT_MS, stopDrain)

/** The backend did not answer these enqueues before `stop()` or `close()` stopped waiting. */
export class UnansweredError extends MillraceError {
  constructor(count: number, afterMs: Ms, by: 'stop' | 'close') {
    const then =
      by === 'stop'
        ? 'They are still sent while this process lives and its backend is open.'
        : 'The backend is closed now, and what was not written is lost.'
    super(
      'ENQUEUES_UNANSWERED',
      `The backend did not answer ${count} ${count === 1 ? 'enqueue' : 'enqueues'} within ${afterMs} ms, so ${by}() waits no ` +
        `longer. ${then} Look at the backend, and enqueue them again under the same ids, which is harmless.`,
      { facts: { count, afterMs, by } },
    )
  }
}

/** An enqueue, or all those that an `enqueueMany` has still to make. */
type Unanswered = Acceptance | Promise<unknown>

const one = () => 1

/** Enqueues that the backend has not answered. */
export class UnansweredEnqueues {
  readonly #clock: Clock
  readonly #hold: () => () => void
  readonly #byId = new Map<string, Acceptance>()
  /** The other answers to wait for, and how many enqueues each of them stands for. */
  readonly #answers = new Map<Unanswered, () => number>()
  #letGo: (() => void) | undefined

  /** `hold` is called when there is something to wait for; what it returns, when there is nothing left. */
  constructor(clock: Clock, hold: () => () => void) {
    this.#clock = clock
    this.#hold = hold
  }

  get isEmpty(): boolean {
    return this.#byId.size + this.#answers.size === 0
  }

  /** Waits for the enqueue of this item, if it is one of this process: before it is answered, the item may seem unknown. */
  async whenAnswered(id: string): Promise<void> {
    try {
      await this.#byId.get(id)?.promise()
    } catch {
      // The caller that enqueued it gets the error. Whether the item exists, the backend knows.
    }
  }

  /** Whether a stop would still wait for it. */
  has(answer: Unanswered): boolean {
    return this.#isById(answer) || this.#answers.has(answer)
  }

  add(answer: Acceptance): void {
    const before = this.#byId.get(answer.id)
    // The same id is in flight again.
    if (before !== undefined) this.#answers.set(before, one)
    this.#byId.set(answer.id, answer)
    this.#letGo ??= this.#hold()
  }

  /** One answer for several enqueues: those that an `enqueueMany` has still to make. */
  wait(answer: Unanswered, count: () => number): void {
    this.#answers.set(answer, count)
    this.#letGo ??= this.#hold()
  }

  answered(answer: Unanswered): void {
    if (this.#isById(answer)) this.#byId.delete(answer.id)
    else this.#answers.delete(answer)
    if (!this.isEmpty) return
    this.#letGo?.()
    this.#letGo = undefined
  }

  #isById(answer: Unanswered): answer is Acceptance {
    return answer instanceof Acceptance && this.#byId.get(answer.id) === answer
  }

  /** Waits this long for the answers to all enqueues so far. Returns how many stayed unanswered; they are not waited for again. */
  async settled(ms: Ms): Promise<number> {
    const open: Unanswered[] = [...this.#byId.values(), ...this.#answers.keys()]
    if (open.length === 0) return 0
    const timer = new AbortController()
    const answers = open.map((answer) => (answer instanceof Acceptance ? answer.promise() : answer))
    await Promise.race([Promise.allSettled(answers), this.#clock.sleep(ms, timer.signal).catch(() => undefined)])
    timer.abort()
    let count = 0
    for (const answer of open) {
      count += this.#isById(answer) ? 1 : (this.#answers.get(answer)?.() ?? 0)
      this.answered(answer)
    }
    return count
  }
}
