import { InletClosedError } from '../errors.js'

/** The subscriptions of an inlet that are open, and whether it is open itself. */
export class OpenSubscriptions<S extends { close(): Promise<void> }> implements Iterable<S> {
  readonly #open = new Set<S>()
  #isClosed = false

  /** Throws if the inlet was closed: it cannot do `what` any more. */
  check(what: string): void {
    if (this.#isClosed) throw new InletClosedError(what)
  }

  /** `make` gets what the subscription has to call when it is closed. */
  add(signal: AbortSignal | undefined, make: (onClose: (closed: S) => void) => S): S {
    signal?.throwIfAborted()
    this.check('be subscribed to')
    const made = make((closed) => this.#open.delete(closed))
    this.#open.add(made)
    return made
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#open].map((one) => one.close()))
  }

  [Symbol.iterator](): Iterator<S> {
    return this.#open[Symbol.iterator]()
  }
}
