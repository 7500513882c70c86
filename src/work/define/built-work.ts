import { isBranded } from '../../core/brand.js'
import { newId } from '../../core/ids.js'
import { OptionTypeError } from '../../core/options.js'
import type { ContractDefinition, Work } from './work.js'

/** The definition of work that was built in this process: a system can enqueue or run such a type without registering it. */
export function definitionOf(work: Work): ContractDefinition<string, never> | undefined {
  return isBuilt(work) ? work.definition() : undefined
}

/** The same work under an id of the caller's. */
export function withId(work: Work, id: string): Work {
  if (typeof id !== 'string' || id === '') throw new OptionTypeError('enqueue.id', 'a string that is not empty', id)
  return isBuilt(work) ? new BuiltWork(work.definition(), work.input, id) : { ...work, id }
}

/** The same work with another input, in which texts that begin with `references` stand for results of other items. */
export function withInput(work: Work, input: unknown, references: string): Work {
  if (isBuilt(work)) return new BuiltWork(work.definition(), input, work.id, references)
  return { ...work, input, references }
}

/** By its brand, which two copies of the package share. */
function isBuilt(work: Work): work is BuiltWork<string> {
  return isBranded(work, BUILT)
}

const BUILT = Symbol.for('millrace.built-work')

/** Work with a hidden definition: people see, compare and log `{ id, type, input }`. */
export class BuiltWork<Name extends string> implements Work<Name, never, never> {
  readonly id: string
  readonly type: Name
  readonly input: unknown
  // Not a field of its own where there are none: people see and compare what they built.
  declare readonly references?: string
  readonly #def: ContractDefinition<Name, never>

  constructor(def: ContractDefinition<Name, never>, input: unknown, id = newId(), references?: string) {
    this.id = id
    this.type = def.type
    this.input = input
    if (references !== undefined) this.references = references
    this.#def = def
  }

  get [BUILT](): true {
    return true
  }

  definition(): ContractDefinition<Name, never> {
    return this.#def
  }
}
