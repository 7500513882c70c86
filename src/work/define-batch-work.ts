import { MillraceError } from '../core/error.js'
import { functionOption, integerOption, numberOption, OptionTypeError } from '../core/options.js'
import type { Maybe } from '../core/time.js'
import { builderOf } from './define-work.js'
import type { NonVoidUnion, WorkBuilder, WorkContext, WorkResult } from './work.js'
import type { WorkOptions } from './work-options.js'

/** How a batched work type gathers its items, and what runs them. */
export interface BatchConfig<I = unknown, O = unknown> extends WorkOptions<I> {
  /** Most items in one run. */
  readonly size: number
  /** A batch that does not fill runs this long after its first item came, in ms. */
  readonly maxWait: number
  /**
   * Runs many items at once and returns one output per input, in order. Each output is that item's result and its
   * contribution to its group; `undefined` contributes nothing. A throw is a failure of every item, and each is judged alone.
   */
  run(inputs: readonly I[]): Maybe<readonly O[]>
}

/** The part of a definition that makes a type a batched one. */
export interface Batch<I = unknown> {
  readonly size: number
  readonly maxWait: number
  run(inputs: readonly I[]): Promise<readonly unknown[]>
}

/** What `run` returned does not say what became of each item. Every item of the batch fails with it. */
export class BatchOutputsError extends MillraceError {
  constructor(type: string, outputs: unknown, inputs: number) {
    const got = Array.isArray(outputs) ? String(outputs.length) : 'a non-array'
    super('BATCH_OUTPUTS', `batch "${type}" returned ${got} outputs for ${inputs} inputs`, { facts: { type, inputs } })
  }
}

/**
 * Defines a work type whose items run together: for calls that take many things as cheaply as one. Items wait for each other
 * in the process that fetched them, under their leases; each is retried, parked and awaited by itself.
 *
 * @example
 * ```ts
 * const index = defineBatchWork('index', {
 *   size: 100,
 *   maxWait: 50,
 *   run: async (docs: readonly { id: string }[]) => (await search.bulk(docs)).map((one) => one.version),
 * })
 * ```
 */
export function defineBatchWork<Name extends string, I, O>(
  name: Name,
  config: BatchConfig<I, O>,
): WorkBuilder<Name, I, O, NonVoidUnion<O>> {
  if (typeof config !== 'object' || config === null)
    throw new OptionTypeError(`work "${name}" batch`, 'an object', config)
  const { size, maxWait, run, ...options } = config
  functionOption(`work "${name}" run`, run)
  const batch: Batch<I> = Object.freeze({
    size: integerOption(`work "${name}" size`, size, { min: 1 }),
    maxWait: numberOption(`work "${name}" maxWait`, maxWait, { min: 0 }),
    run: async (inputs: readonly I[]) => {
      const outputs: unknown = await config.run(inputs)
      if (!Array.isArray(outputs) || outputs.length !== inputs.length) {
        throw new BatchOutputsError(name, outputs, inputs.length)
      }
      return outputs
    },
  })
  /** A batch of one: what skips the queue has nobody to wait for. */
  const alone = async (input: I, ctx: WorkContext): Promise<WorkResult> => {
    const [output] = await batch.run([input])
    return output === undefined ? ctx.void() : ctx.result(output)
  }
  return builderOf<Name, I, O, NonVoidUnion<O>>(name, alone, options, batch)
}
