const OUTCOME: unique symbol = Symbol.for('millrace.batch-outcome') as never

/** The item succeeded with this value. Made by `ok(value)` of a batch handler. */
export interface BatchOk<O = unknown> {
  readonly [OUTCOME]: 'ok'
  readonly value: O
}

/** The item failed with this error, and its mates did not. Made by `fail(error)` of a batch handler. */
export interface BatchFail {
  readonly [OUTCOME]: 'fail'
  readonly error: unknown
}

/** What became of one item of a batch. */
export type BatchOutcome<O = unknown> = BatchOk<O> | BatchFail

/** The result of an item for which a batch handler returned this: what was given to `ok`, or the plain value. */
export type BatchValue<R> = R extends BatchFail ? never : R extends BatchOk<infer O> ? O : R

/** The second argument of a batch handler: says what became of each item. Its functions work when taken out of it. */
export interface BatchOutcomes {
  /** This item succeeded. The same as returning the plain value in its place. */
  ok<O>(value: O): BatchOk<O>
  /** This item succeeded, without a result. */
  ok(): BatchOk<undefined>
  /**
   * This item failed. The error is classified as if the item had run alone and thrown it: the item is retried, deferred or
   * dead-lettered by itself, and its mates are not affected.
   */
  fail(error: unknown): BatchFail
}

/** Makes the outcomes of one run, and remembers them: the handler must return every one. */
export class MadeOutcomes implements BatchOutcomes {
  readonly #made = new Set<unknown>()

  readonly ok = <O>(value?: O): BatchOk<O> => this.#make({ [OUTCOME]: 'ok', value: value as O })

  readonly fail = (error: unknown): BatchFail => this.#make({ [OUTCOME]: 'fail', error })

  /** How many of them the handler did not return. */
  missingIn(returned: readonly unknown[]): number {
    if (this.#made.size === 0) return 0
    const found = new Set(returned)
    return [...this.#made].filter((one) => !found.has(one)).length
  }

  #make<T extends BatchOutcome>(outcome: T): T {
    const made = Object.freeze(outcome)
    this.#made.add(made)
    return made
  }
}

/** What a handler returned for one item: an outcome, or the plain value of a success. */
export function outcomeOf(returned: unknown): BatchOutcome {
  return isOutcome(returned) ? returned : { [OUTCOME]: 'ok', value: returned }
}

/** By its brand, so two copies of the package agree. */
function isOutcome(value: unknown): value is BatchOutcome {
  return typeof value === 'object' && value !== null && OUTCOME in value
}

export function isFail(outcome: BatchOutcome): outcome is BatchFail {
  return outcome[OUTCOME] === 'fail'
}
