/**
 * An abort signal that is created only when it is read. A consume loop carries a hundred thousand messages a second,
 * and hardly any handler reads its signal: creating an `AbortController` for each would cost more than the rest.
 */
export class LazySignal {
  #controller: AbortController | undefined
  #listener: ((reason: unknown) => void) | undefined
  #aborted = false
  #reason: unknown

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** Calls `listener` with the reason of the abort, once, without a signal being made for it. One listener at a time. */
  whenAborted(listener: ((reason: unknown) => void) | undefined): void {
    this.#listener = listener
    if (this.#aborted) listener?.(this.#reason)
  }

  /** The first abort counts; later ones change nothing. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    this.#listener?.(reason)
  }
}
