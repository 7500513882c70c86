import type { MaybePromise } from '../../core/time/time.js'

const OUTCOME: unique symbol = Symbol.for('millrace.batch-outcome') as never

/** The item succeeded with this value. Made by `ok(value)` of a batch handler. */
export interface BatchOk<O = unknown> {
  readonly [OUTCOME]: 'ok'
  readonly value: O
}

/** The item failed with this error; the others of the batch did not. Made by `fail(error)` of a batch handler. */
export interface BatchFail {
  readonly [OUTCOME]: 'fail'
  readonly error: unknown
}

/** The outcome of one item of a batch. */
export type BatchOutcome<O = unknown> = BatchOk<O> | BatchFail

/** The result of an item: what a batch handler gave to `ok`, or the plain value that it returned. */
export type BatchValue<R> =
  R extends Promise<infer P> ? BatchValue<P> : R extends BatchFail ? never : R extends BatchOk<infer O> ? O : R

/** The second argument of a batch handler, which makes outcomes. Its functions work when taken out of the object. */
export interface BatchOutcomes {
  /** This item succeeded. The same as returning the plain value in its place. A promise is awaited. */
  ok<O>(value: O | Promise<O>): BatchOk<O>
  /** This item succeeded, without a result. */
  ok(): BatchOk<undefined>
  /**
   * This item failed. The error is classified as if the item had run by itself and thrown it: the item is retried, deferred or
   * dead-lettered, and the others of the batch are not affected.
   */
  fail(error: unknown): BatchFail
}

/** Makes the outcomes of one run, and remembers those that the handler has not returned. */
export class MadeOutcomes implements BatchOutcomes {
  readonly #unreturned = new Set<BatchOutcome>()

  readonly ok = <O>(value?: O | Promise<O>): BatchOk<O> => {
    // Awaited once the handler has returned it. One that it does not return fails nothing.
    if (value instanceof Promise) value.catch(() => undefined)
    return this.#make(succeeded(value as O))
  }

  readonly fail = (error: unknown): BatchFail => this.#make(failed(error))

  /** How many of them were made and not returned. */
  get unreturned(): number {
    return this.#unreturned.size
  }

  /**
   * What a handler returned for one item: an outcome, or the plain value of a success. A promise of either is awaited, and fails
   * its own item if it rejects.
   */
  returned(output: unknown): MaybePromise<BatchOutcome> {
    if (output instanceof Promise) return output.then((value) => this.returned(value), failed)
    if (!isOutcome(output)) return succeeded(output)
    this.#unreturned.delete(output)
    return !isFail(output) && output.value instanceof Promise ? output.value.then(succeeded, failed) : output
  }

  #make<T extends BatchOutcome>(outcome: T): T {
    this.#unreturned.add(outcome)
    return outcome
  }
}

const succeeded = <O>(value: O): BatchOk<O> => Object.freeze({ [OUTCOME]: 'ok', value })

const failed = (error: unknown): BatchFail => Object.freeze({ [OUTCOME]: 'fail', error })

/** By its brand, which two copies of the package share. */
function isOutcome(value: unknown): value is BatchOutcome {
  return typeof value === 'object' && value !== null && OUTCOME in value
}

export function isFail(outcome: BatchOutcome): outcome is BatchFail {
  return outcome[OUTCOME] === 'fail'
}
