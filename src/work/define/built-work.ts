import { newId } from '../../core/ids.js'
import { OptionTypeError } from '../../core/options.js'
import type { ContractDefinition, Work } from './work.js'

/** The definition of work that was built in this process: a system can enqueue or run such a type without registering it. */
export function definitionOf(work: Work): ContractDefinition<string, never> | undefined {
  return work instanceof BuiltWork ? work.definition() : undefined
}

/**
 * The group that work opens when it is enqueued. Made once: a caller that enqueues the same work again, after an enqueue that was
 * not answered, means the same group.
 */
export function groupIdOf(work: Work, newId: () => string): string {
  return work instanceof BuiltWork ? work.group(newId) : newId()
}

/** The same work under an id of the caller's. */
export function withId(work: Work, id: string): Work {
  if (typeof id !== 'string' || id === '') throw new OptionTypeError('enqueue.id', 'a string that is not empty', id)
  return work instanceof BuiltWork ? new BuiltWork(work.definition(), work.input, id) : { ...work, id }
}

/** The same work with another input, in which texts that begin with `references` stand for results of other items. */
export function withInput(work: Work, input: unknown, references: string): Work {
  if (work instanceof BuiltWork) return new BuiltWork(work.definition(), input, work.id, references)
  return { ...work, input, references }
}

/** Work with a hidden definition: people see, compare and log `{ id, type, input }`. */
export class BuiltWork<Name extends string> implements Work<Name, never, never> {
  readonly id: string
  readonly type: Name
  readonly input: unknown
  // Not a field of its own where there are none: people see and compare what they built.
  declare readonly references?: string
  readonly #def: ContractDefinition<Name, never>
  #groupId: string | undefined

  constructor(def: ContractDefinition<Name, never>, input: unknown, id = newId(), references?: string) {
    this.id = id
    this.type = def.type
    this.input = input
    if (references !== undefined) this.references = references
    this.#def = def
  }

  definition(): ContractDefinition<Name, never> {
    return this.#def
  }

  group(mint: () => string): string {
    this.#groupId ??= mint()
    return this.#groupId
  }
}
