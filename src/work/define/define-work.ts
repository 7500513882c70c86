import type { StandardSchemaV1 } from '@standard-schema/spec'
import { newId } from '../../core/ids.js'
import { OptionTypeError } from '../../core/options.js'
import type { Batch } from './define-batch-work.js'
import type {
  GroupOfResult,
  NonVoidUnion,
  SelfOfResult,
  Work,
  WorkBuilder,
  WorkContext,
  WorkDefinition,
  WorkHandler,
  WorkResult,
} from './work.js'
import { checkWorkOptions, type WorkOptions } from './work-options.js'

/**
 * Defines a work type: a name, a handler and how it is run. What comes back mints instances and is passed to
 * `createWork({ work: [...] })`.
 *
 * @example
 * ```ts
 * const add = defineWork('add', (i: { a: number; b: number }, ctx) => ctx.result(i.a + i.b))
 * await w.enqueue(add({ a: 1, b: 2 })).result() // 3
 * ```
 */
export function defineWork<Name extends string, S extends StandardSchemaV1, R extends WorkResult<unknown, unknown>>(
  name: Name,
  handler: (input: StandardSchemaV1.InferOutput<S>, ctx: WorkContext) => R | Promise<R>,
  /** With a schema for its input: the caller gives what the schema takes, and the handler gets what the schema returns. */
  options: WorkOptions<StandardSchemaV1.InferInput<S>, StandardSchemaV1.InferOutput<S>> & { readonly input: S },
): WorkBuilder<Name, StandardSchemaV1.InferInput<S>, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>>
export function defineWork<Name extends string, I, R extends WorkResult<unknown, unknown>>(
  name: Name,
  handler: (input: I, ctx: WorkContext) => R | Promise<R>,
  options?: Omit<WorkOptions<I>, 'input'>,
): WorkBuilder<Name, I, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>>
export function defineWork<Name extends string, I, R extends WorkResult<unknown, unknown>>(
  name: Name,
  handler: (input: I, ctx: WorkContext) => R | Promise<R>,
  options: WorkOptions<I> = {},
): WorkBuilder<Name, I, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>> {
  if (typeof handler !== 'function') throw new OptionTypeError(`work "${String(name)}" handler`, 'a function', handler)
  // A handler's own result type is one of the results there are.
  return builderOf(name, handler as WorkHandler<I>, options)
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
  const def: WorkDefinition<Name, I> = Object.freeze({
    type: name,
    // Copies: later changes to the caller's objects do not change the type.
    options: Object.freeze({
      ...options,
      ...(options.retry === undefined ? {} : { retry: Object.freeze({ ...options.retry }) }),
    }),
    run,
    ...(batch === undefined ? {} : { batch }),
  })
  const build = (input: I): Work<Name, S, G> => new BuiltWork(def, input)
  return Object.assign(build, { type: name, def })
}

/** The definition of work that was built in this process: a system can run such a type without registering it. */
export function definitionOf(work: Work): WorkDefinition<string, never> | undefined {
  return work instanceof BuiltWork ? work.definition() : undefined
}

/**
 * The group that work opens when it is enqueued. Made once: a caller that enqueues the same work again, after an enqueue that was
 * not answered, means the same group.
 */
export function groupIdOf(work: Work, newId: () => string): string {
  return work instanceof BuiltWork ? work.group(newId) : newId()
}

/** Work with a hidden definition: people see, compare and log `{ id, type, input }`. */
class BuiltWork<Name extends string> implements Work<Name, never, never> {
  readonly id: string
  readonly type: Name
  readonly input: unknown
  readonly #def: WorkDefinition<Name, never>
  #groupId: string | undefined

  constructor(def: WorkDefinition<Name, never>, input: unknown) {
    this.id = newId()
    this.type = def.type
    this.input = input
    this.#def = def
  }

  definition(): WorkDefinition<Name, never> {
    return this.#def
  }

  group(mint: () => string): string {
    this.#groupId ??= mint()
    return this.#groupId
  }
}
