import { MillraceError } from '../../core/error.js'
import { functionOption, integerOption, numberOption, OptionTypeError } from '../../core/options.js'
import type { MaybePromise } from '../../core/time/time.js'
import { type BatchOutcome, type BatchOutcomes, type BatchValue, isFail, MadeOutcomes } from '../run/batch-outcome.js'
import { builderOf } from './define-work.js'
import type { NonVoidUnion, WorkBuilder, WorkContext } from './work.js'
import type { WorkOptions } from './work-options.js'

/** How a batched work type gathers its items, and what runs them. `O`: what `run` returns for an item, plain or an outcome. */
export interface BatchConfig<I = unknown, O = unknown> extends WorkOptions<I> {
  /** Most items in one run. */
  readonly size: number
  /** A batch that does not fill runs this long after its first item came, in ms. */
  readonly maxWait: number
  /**
   * Runs many items together and returns one output per input, in order: `ok(value)` or the plain value for an item that
   * succeeded, `fail(error)` for one that failed. The two forms can be mixed, and promises of them are awaited: one that
   * rejects fails its item.
   *
   * The value is the item's result and its contribution to its group; `undefined` contributes nothing. `fail(error)` concerns
   * its item only: it is retried, deferred or dead-lettered as if it had run by itself and thrown the error.
   *
   * A throw is a failure of every item, each by its own attempts. A throw that would dead-letter them by its class
   * (`PoisonError`, HTTP 400) does not say which item is to blame: each of them then runs once more, as a batch of one, in the
   * same attempt.
   */
  run(inputs: readonly I[], outcomes: BatchOutcomes): MaybePromise<readonly O[]>
}

/** What `defineBatchWork` adds to a builder. */
export interface WithBatchHandler<I, R> {
  /** The function that was given: call it in a unit test, with `fakeOutcomes()` of `millrace/testing`. */
  readonly handler: (inputs: readonly I[], outcomes: BatchOutcomes) => R | Promise<R>
}

/** An item of a batch that runs, as the simulation sees it: the same words as in a context. */
export type BatchedItem = Pick<WorkContext, 'id' | 'groupId' | 'attempt' | 'fence' | 'signal'>

/** The part of a definition that makes a type a batched one. */
export interface Batch<I = unknown> {
  readonly size: number
  readonly maxWait: number
  /** `items`: which ones they are. The handler does not get that; who watches runs does. */
  run(inputs: readonly I[], items?: () => readonly BatchedItem[]): Promise<BatchReturned>
}

/** What a batch handler returned: one outcome per input, in order. */
export interface BatchReturned {
  readonly outcomes: readonly BatchOutcome[]
  /** How many outcomes it made with `ok` or `fail` and did not return. */
  readonly unreturned: number
}

/** What `run` returned does not say what became of each item. Every item of the batch fails with it. */
class BatchOutputsError extends MillraceError {
  constructor(type: string, outputs: unknown, inputs: number) {
    const got = Array.isArray(outputs) ? String(outputs.length) : 'a non-array'
    super('BATCH_OUTPUTS', `batch "${type}" returned ${got} outputs for ${inputs} inputs`, { facts: { type, inputs } })
  }
}

/**
 * Defines a work type whose items run together: for calls that take many things as cheaply as one. Items wait for each other
 * in the process that claimed them, under their leases; each is retried, dead-lettered and awaited by itself.
 *
 * @example
 * ```ts
 * const index = defineBatchWork('index', {
 *   size: 100,
 *   maxWait: 50,
 *   run: async (docs: readonly { id: string }[], { ok, fail }) =>
 *     (await search.bulk(docs)).map((one) => (one.error === undefined ? ok(one.version) : fail(one.error))),
 * })
 * ```
 */
export function defineBatchWork<Name extends string, I, R extends readonly unknown[]>(
  name: Name,
  // The whole array is inferred, so that one branch may return values and another one failures.
  config: Omit<BatchConfig<I>, 'run'> & { run(inputs: readonly I[], outcomes: BatchOutcomes): R | Promise<R> },
): WorkBuilder<Name, I, BatchValue<R[number]>, NonVoidUnion<BatchValue<R[number]>>> & WithBatchHandler<I, R>
export function defineBatchWork<Name extends string, I, O>(
  name: Name,
  config: BatchConfig<I, O>,
): WorkBuilder<Name, I, BatchValue<O>, NonVoidUnion<BatchValue<O>>> & WithBatchHandler<I, readonly O[]>
export function defineBatchWork<Name extends string, I, O>(
  name: Name,
  config: BatchConfig<I, O>,
): WorkBuilder<Name, I, BatchValue<O>, NonVoidUnion<BatchValue<O>>> & WithBatchHandler<I, readonly O[]> {
  if (typeof config !== 'object' || config === null)
    throw new OptionTypeError(`work "${name}" batch`, 'an object', config)
  const { size, maxWait, run, ...options } = config
  functionOption(`work "${name}" run`, run)
  const batch: Batch<I> = Object.freeze({
    size: integerOption(`work "${name}" size`, size, { min: 1 }),
    maxWait: numberOption(`work "${name}" maxWait`, maxWait, { min: 0 }),
    run: async (inputs: readonly I[]) => {
      const made = new MadeOutcomes()
      const outputs: unknown = await config.run(inputs, made)
      // All of them, even if their number is wrong: a promise that is not awaited would end the process if it rejects.
      const outcomes = Array.isArray(outputs) ? await Promise.all(Array.from(outputs, (one) => made.returned(one))) : []
      if (!Array.isArray(outputs) || outputs.length !== inputs.length) {
        throw new BatchOutputsError(name, outputs, inputs.length)
      }
      return { outcomes, unreturned: made.unreturned }
    },
  })
  /** A batch of one: an item that skips the queue, or that no other item joined in time. */
  const runOne = async (input: I, ctx: WorkContext): Promise<unknown> => {
    const { outcomes, unreturned } = await batch.run([input])
    const outcome = outcomes[0]!
    if (isFail(outcome)) throw outcome.error
    // An outcome that was not returned counts as an instruction that was not: `strictReturn` decides whether that is an error.
    for (let i = 0; i < unreturned; i += 1) ctx.void()
    return outcome.value
  }
  const builder = builderOf<Name, I, BatchValue<O>, NonVoidUnion<BatchValue<O>>>(name, runOne, options, batch)
  return Object.assign(builder, {
    handler: (inputs: readonly I[], outcomes: BatchOutcomes) => config.run(inputs, outcomes),
  })
}
