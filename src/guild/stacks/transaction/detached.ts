import { DetachedDeadlockError } from '../errors.js'
import type { FifoLock } from './fifo-lock.js'
import type { Transaction } from './transaction.js'

/** A call that stepped out of a transaction. Whether that transaction awaits it decides whether it may wait for the lock. */
export class Detachment {
  readonly from: Transaction
  readonly #whenAwaited: Promise<void>
  #awaited = (): void => undefined
  #isAwaited = false

  constructor(from: Transaction) {
    this.from = from
    this.#whenAwaited = new Promise((resolve) => {
      this.#awaited = resolve
    })
  }

  /** The transaction waits for what was detached. */
  awaited(): void {
    if (this.from.isEnded) return
    this.#isAwaited = true
    this.#awaited()
  }

  /** Takes the writer lock, unless its holder waits for this call. */
  async take(lock: FifoLock): Promise<() => void> {
    const taken = lock.take()
    if (!this.from.isEnded) {
      const isStuck = this.#isAwaited ? true : await Promise.race([taken, this.#whenAwaited.then(() => true as const)])
      if (isStuck === true && !this.from.isEnded) {
        // Our place in the queue cannot be given back, so it is passed on as soon as it comes.
        void taken.then((release) => release())
        throw new DetachedDeadlockError()
      }
    }
    return taken
  }
}

/** The promise that `detached` returns. It notices that it is awaited, which a plain promise does not. */
export class DetachedRun<R> extends Promise<R> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  #onThen = (): void => undefined

  static of<R>(run: Promise<R>, onThen: () => void): DetachedRun<R> {
    const made = new DetachedRun<R>((resolve, reject) => {
      run.then(resolve, reject)
    })
    made.#onThen = onThen
    return made
  }

  override then<A = R, B = never>(
    fulfilled?: ((value: R) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#onThen()
    return super.then(fulfilled, rejected)
  }
}
