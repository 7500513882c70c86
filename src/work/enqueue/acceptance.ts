import type { Receipt } from '../define/work.js'

/** Is notified of what became of an enqueue. Neither function may throw. */
export interface AcceptanceListener {
  accepted(acceptance: Acceptance, receipt: Receipt): void
  failed(acceptance: Acceptance, error: unknown): void
}

type End = { readonly receipt: Receipt } | { readonly error: unknown }

/** What becomes of one enqueue. Its promise is made when a caller asks for it: in a bulk hardly one does. */
export class Acceptance {
  readonly id: string
  /** The caller has asked for an outcome, so a failure needs no other listener. */
  isAwaited = false
  #end: End | undefined
  #listeners: AcceptanceListener[] | undefined
  #promise: Promise<Receipt> | undefined
  #settle: ((end: End) => void) | undefined

  constructor(id: string) {
    this.id = id
  }

  /** Of an enqueue that waits for more than its commit. */
  static of(id: string, answer: Promise<Receipt>): Acceptance {
    const acceptance = new Acceptance(id)
    answer.then(
      (receipt) => acceptance.accept(receipt),
      (error: unknown) => acceptance.fail(error),
    )
    return acceptance
  }

  accept(receipt: Receipt): void {
    this.#over({ receipt })
  }

  fail(error: unknown): void {
    this.#over({ error })
  }

  listen(listener: AcceptanceListener): void {
    const end = this.#end
    // It failed before its caller had it. The caller may still ask for the outcome in this turn.
    if (end !== undefined) queueMicrotask(() => this.#notify(listener, end))
    else if (this.#listeners === undefined) this.#listeners = [listener]
    else this.#listeners.push(listener)
  }

  /** Its rejection is never an unhandled one: a failure that no caller awaits is reported to the system. */
  promise(): Promise<Receipt> {
    this.#promise ??= new Promise((resolve, reject) => {
      this.#settle = (end) => ('receipt' in end ? resolve(end.receipt) : reject(end.error))
      if (this.#end !== undefined) this.#settle(this.#end)
    })
    this.#promise.catch(() => undefined)
    return this.#promise
  }

  #over(end: End): void {
    this.#end = end
    this.#settle?.(end)
    for (const listener of this.#listeners ?? []) this.#notify(listener, end)
  }

  #notify(listener: AcceptanceListener, end: End): void {
    if ('receipt' in end) listener.accepted(this, end.receipt)
    else listener.failed(this, end.error)
  }
}
