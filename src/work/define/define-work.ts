import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionTypeError } from '../../core/options.js'
import { BuiltWork } from './built-work.js'
import type { Batch } from './define-batch-work.js'
import { isContract } from './define-contract.js'
import type {
  AnyWorkContract,
  GroupOfResult,
  InputOf,
  NonVoidUnion,
  OutputOf,
  ReturnFor,
  SelfOfResult,
  Work,
  WorkBuilder,
  WorkContext,
  WorkDefinition,
  WorkHandler,
} from './work.js'
import { checkRunOptions, checkWorkOptions, frozenOptions, type RunOptions, type WorkOptions } from './work-options.js'

/** What `defineWork` adds to a builder. */
export interface WithHandler<I, R> {
  /** The function that was given: call it in a unit test, with `fakeContext()` of `millrace/testing`. */
  readonly handler: (input: I, ctx: WorkContext) => R | Promise<R>
}

/**
 * Defines a work type: a name, a handler and how it is run. What the handler returns is the item's result. What comes back
 * mints instances and is passed to `createWork({ work: [...] })`. Given a contract instead of a name, the handler carries
 * out that contract, and its options are only those that count where it runs.
 *
 * @example
 * ```ts
 * const add = defineWork('add', (i: { a: number; b: number }) => i.a + i.b)
 * await w.enqueue(add({ a: 1, b: 2 })).result() // 3
 * ```
 */
export function defineWork<C extends AnyWorkContract, R extends ReturnFor<C>>(
  contract: C,
  handler: (input: OutputOf<C>, ctx: WorkContext) => R | Promise<R>,
  options?: RunOptions<OutputOf<C>>,
): WorkBuilder<C['type'], InputOf<C>, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>> & WithHandler<OutputOf<C>, R>
export function defineWork<Name extends string, S extends StandardSchemaV1, R>(
  name: Name,
  handler: (input: StandardSchemaV1.InferOutput<S>, ctx: WorkContext) => R | Promise<R>,
  /** With a schema for its input: the caller gives what the schema takes, and the handler gets what the schema returns. */
  options: WorkOptions<StandardSchemaV1.InferInput<S>, StandardSchemaV1.InferOutput<S>> & { readonly input: S },
): WorkBuilder<Name, StandardSchemaV1.InferInput<S>, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>> &
  WithHandler<StandardSchemaV1.InferOutput<S>, R>
export function defineWork<Name extends string, I, R>(
  name: Name,
  handler: (input: I, ctx: WorkContext) => R | Promise<R>,
  options?: Omit<WorkOptions<I>, 'input'>,
): WorkBuilder<Name, I, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>> & WithHandler<I, R>
/** Every form in one. The compiler explains a mistake by the last form, so this one says what is wrong in any; nothing else matches it. */
export function defineWork<F extends string | AnyWorkContract>(
  first: F,
  handler: F extends AnyWorkContract
    ? (input: OutputOf<F>, ctx: WorkContext) => ReturnFor<F> | Promise<ReturnFor<F>>
    : (input: never, ctx: WorkContext) => unknown,
  options?: F extends AnyWorkContract ? RunOptions<OutputOf<F>> : Omit<WorkOptions<never>, 'input'>,
): never
export function defineWork(type: string | AnyWorkContract, handler: unknown, given: unknown = {}): unknown {
  const contract = isContract(type) ? type.contract : undefined
  const name = contract?.type ?? type
  if (typeof handler !== 'function') throw new OptionTypeError(`work "${String(name)}" handler`, 'a function', handler)
  // The forms above say what goes with what; here it is checked as it comes.
  const run = handler as WorkHandler
  const options = given as WorkOptions
  if (contract === undefined) return Object.assign(builderOf(name as string, run, options), { handler })
  checkRunOptions(contract.type, options)
  const def = { type: contract.type, options: { ...contract.options, ...options }, run, contract }
  return Object.assign(builderFrom(def), { handler })
}

/** The builder of a type, with its definition. */
export function builderOf<Name extends string, I, S, G>(
  name: Name,
  run: WorkHandler<I>,
  options: WorkOptions<I>,
  batch?: Batch<I>,
): WorkBuilder<Name, I, S, G> {
  if (typeof name !== 'string' || name === '') throw new OptionTypeError('defineWork name', 'a non-empty string', name)
  checkWorkOptions(name, options)
  return builderFrom({ type: name, options, run, ...(batch === undefined ? {} : { batch }) })
}

function builderFrom<Name extends string, I, S, G>(given: WorkDefinition<Name, I>): WorkBuilder<Name, I, S, G> {
  const def: WorkDefinition<Name, I> = Object.freeze({ ...given, options: frozenOptions(given.options) })
  const build = (input: I): Work<Name, S, G> => new BuiltWork(def, input)
  return Object.assign(build, { type: def.type, def })
}
