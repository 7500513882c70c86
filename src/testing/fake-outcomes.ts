import type { MaybePromise } from '../core/time/time.js'
import { type BatchOutcomes, isFail, MadeOutcomes } from '../work/run/batch-outcome.js'
import { NotReturnedError } from '../work/settle/result-tree.js'

/** What a batch handler said about one of its items. */
export type ReadOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown }

/** The second argument of a batch handler, for a test that calls it by itself. */
export interface FakeOutcomes extends BatchOutcomes {
  /**
   * What became of each item, in its order. Rejects with the error of the handler, and with `NOT_RETURNED` where it made an
   * outcome and did not return it.
   */
  read(outputs: MaybePromise<readonly unknown[]>): Promise<readonly ReadOutcome[]>
}

/**
 * The outcomes of a batch handler, and what it made of them.
 *
 * @example
 * ```ts
 * const outcomes = fakeOutcomes()
 * const [first] = await outcomes.read(index.handler([{ id: 'a' }], outcomes))
 * ```
 */
export function fakeOutcomes(): FakeOutcomes {
  const made = new MadeOutcomes()
  const read = async (outputs: MaybePromise<readonly unknown[]>): Promise<readonly ReadOutcome[]> => {
    const outcomes = await Promise.all((await outputs).map((one) => made.returned(one)))
    if (made.unreturned > 0) throw new NotReturnedError('fake', made.unreturned)
    return outcomes.map((one) => (isFail(one) ? { ok: false, error: one.error } : { ok: true, value: one.value }))
  }
  return Object.assign(made, { read })
}
