import { newId } from '../core/ids.js'
import { OptionTypeError } from '../core/options.js'
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
export function defineWork<Name extends string, I, R extends WorkResult<unknown, unknown>>(
  name: Name,
  handler: (input: I, ctx: WorkContext) => R | Promise<R>,
  options: WorkOptions<I> = {},
): WorkBuilder<Name, I, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>> {
  if (typeof name !== 'string' || name === '') throw new OptionTypeError('defineWork name', 'a non-empty string', name)
  if (typeof handler !== 'function') throw new OptionTypeError(`work "${name}" handler`, 'a function', handler)
  checkWorkOptions(name, options)
  const def: WorkDefinition<Name, I> = Object.freeze({
    type: name,
    // Copies: what the caller does with his objects afterwards does not change the type.
    options: Object.freeze({
      ...options,
      ...(options.retry === undefined ? {} : { retry: Object.freeze({ ...options.retry }) }),
    }),
    run: handler as WorkHandler<I>, // A handler's own result type is one of the results there are.
  })
  const build = (input: I): Work<Name, SelfOfResult<R>, NonVoidUnion<GroupOfResult<R>>> => new BuiltWork(def, input)
  return Object.assign(build, { type: name, def })
}

/** The definition of work that was built in this process, so that a system can run a type it was never told of. */
export function definitionOf(work: Work): WorkDefinition<string, never> | undefined {
  return work instanceof BuiltWork ? work.definition() : undefined
}

/**
 * The group that work opens when it is enqueued. Minted once: whoever enqueues the same work again, because nobody told him
 * whether the first try arrived, means the same group, and his handle waits for the right one.
 */
export function groupIdOf(work: Work, newId: () => string): string {
  return work instanceof BuiltWork ? work.group(newId) : newId()
}

/** Work with its definition out of sight: what people see, compare and log is `{ id, type, input }`. */
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
