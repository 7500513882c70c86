import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionTypeError } from '../../core/options.js'
import { BuiltWork } from './built-work.js'
import type { AnyWorkContract, ContractDefinition, WorkContract } from './work.js'
import { type ContractOptions, checkContractOptions, frozenOptions, isSchema } from './work-options.js'

/** What the caller gives, by the schema. */
type InputFor<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S> : unknown

/**
 * Defines a work type without its handler, for a module that both sides import: the web process adds work by it, and the
 * worker gives it a handler with `defineWork(contract, handler)`. Its options are those that count where items are enqueued:
 * schema, codec, retry, tags, priority and so on.
 *
 * @example
 * ```ts
 * // contracts.ts
 * export const welcome = defineContract('welcome', z.object({ email: z.email() }), { retry: { attempts: 5 } })
 * // web.ts
 * const web = createWork({ backend, autoStart: false, work: [welcome] })
 * await web.add(welcome({ email: 'ada@example.com' }))
 * // worker.ts
 * const worker = createWork({ backend, work: [defineWork(welcome, async ({ email }) => send(email), { concurrency: 4 })] })
 * ```
 */
export function defineContract<Name extends string, S extends StandardSchemaV1 | undefined = undefined>(
  name: Name,
  /** What inputs must be: any Standard Schema (zod, valibot, arktype, …). Without one, `.takes<Input>()` says what they are. */
  schema?: S,
  options?: Omit<ContractOptions<InputFor<S>>, 'input'>,
): WorkContract<Name, InputFor<S>, S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : unknown>
export function defineContract<Name extends string, I>(
  name: Name,
  schema?: StandardSchemaV1,
  options: ContractOptions<I> = {},
): WorkContract<Name, I> {
  if (typeof name !== 'string' || name === '')
    throw new OptionTypeError('defineContract name', 'a non-empty string', name)
  if (schema !== undefined && !isSchema(schema)) {
    const allowed = 'a Standard Schema, like those of zod or valibot, or undefined (options come after it)'
    throw new OptionTypeError(`the schema of defineContract("${name}", schema, options)`, allowed, schema)
  }
  const all = schema === undefined ? options : { ...options, input: schema }
  checkContractOptions(name, all)
  const contract: ContractDefinition<Name, I> = Object.freeze({ type: name, options: frozenOptions(all) })
  const build = (input: I) => new BuiltWork(contract, input)
  // What an input and a result are is known to the compiler only.
  const made: WorkContract<Name, I> = Object.assign(build, {
    type: name,
    contract,
    takes: () => made as never,
    returns: () => made as never,
  })
  return made
}

/** Whether it is a contract, also one of another copy of the package. */
export function isContract(value: unknown): value is AnyWorkContract {
  return typeof value === 'function' && typeof (value as Partial<AnyWorkContract>).contract?.type === 'string'
}
