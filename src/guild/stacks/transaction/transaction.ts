import type { BackendTx } from '../backend.js'
import { isRefusal, TransactionClosedError, TransactionDoomedError } from '../errors.js'
import { Changes } from './coalesce.js'

/**
 * The operations of one piece of user code inside a transaction: the function given to `transaction()`, or one phase-1 handler.
 * They run one after the other in the order of their calls. A handler has its own frame, because the write that
 * triggered it still holds its place in the frame above.
 */
export class Frame {
  readonly transaction: Transaction
  /** How deep writes are nested here; 1 is what user code wrote itself. */
  readonly level: number
  #tail: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(transaction: Transaction, level: number) {
    this.transaction = transaction
    this.level = level
  }

  /** Runs the operation when those before it are done. */
  run<T>(operation: (tx: BackendTx) => Promise<T>): Promise<T> {
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const result = this.#tail.then(() => {
      // An operation before this one may have doomed the transaction meanwhile.
      const late = this.#refusal()
      if (late !== undefined) throw late
      return operation(this.transaction.backend)
    })
    this.#tail = result.catch(() => undefined)
    return result
  }

  /** Waits for what was called but not awaited; then nothing more is taken. */
  async close(): Promise<void> {
    for (let tail: unknown; tail !== this.#tail; ) {
      tail = this.#tail
      await this.#tail
    }
    this.#isClosed = true
  }

  /** Throws what an operation that came now would be refused with. */
  check(): void {
    const refusal = this.#refusal()
    if (refusal !== undefined) throw refusal
  }

  #refusal(): Error | undefined {
    if (this.transaction.isEnded) return new TransactionClosedError()
    if (this.#isClosed) return new TransactionClosedError('phase-1 handler')
    return this.transaction.doomed
  }
}

/** A transaction on its way: one per outermost `transaction()` or single write. */
export class Transaction {
  readonly backend: BackendTx
  readonly isReadOnly: boolean
  readonly changes = new Changes()
  readonly root: Frame
  /** Whether handlers of users have run in it, which would notice a second run. */
  hasCalledHandlers = false
  #doom: { readonly cause: unknown } | undefined
  #isEnded = false
  #isBroken = false

  constructor(backend: BackendTx, isReadOnly: boolean) {
    this.backend = backend
    this.isReadOnly = isReadOnly
    this.root = new Frame(this, 1)
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** What operations are refused with once the transaction can only be rolled back. */
  get doomed(): TransactionDoomedError | undefined {
    return this.#doom === undefined ? undefined : new TransactionDoomedError(this.#doom.cause)
  }

  /** Whether the store has failed in it, or another transaction was faster. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** From now on it can only be rolled back. The first cause is the one that is reported. */
  doom(cause: unknown): void {
    this.#doom ??= { cause }
  }

  /** Runs a step of the backend. An error that is no refusal leaves the database's transaction in an unknown state. */
  async step<T>(run: (tx: BackendTx) => Promise<T>): Promise<T> {
    try {
      return await run(this.backend)
    } catch (error) {
      if (!isRefusal(error)) {
        this.#isBroken = true
        this.doom(error)
      }
      throw error
    }
  }

  end(): void {
    this.#isEnded = true
  }
}
