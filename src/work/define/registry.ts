import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JsonCodec } from '../../core/codec/codec.js'
import { MillraceError } from '../../core/error.js'
import { closestName } from '../../core/text/closest-name.js'
import { closestHint } from '../../core/text/did-you-mean.js'
import type { Queue } from '../../ports/ports.js'
import { definitionOf } from './built-work.js'
import { isContract } from './define-contract.js'
import { dependencyDefinition } from './dependency.js'
import type { AnyWorkType, ContractDefinition, Work, WorkDefinition } from './work.js'

/** Two types have the same name: the second would silently take over the items of the first. */
export class DuplicateTypeError extends MillraceError {
  constructor(type: string) {
    super(
      'DUPLICATE_TYPE',
      `Work "${type}" is registered twice with different handlers. Give one of them another name.`,
      {
        facts: { type },
      },
    )
  }
}

/** `enqueue(name, …)` with a name that is not registered. */
export class UnknownTypeError extends MillraceError {
  constructor(type: string, known: readonly string[]) {
    const closest = closestName(type, known)
    super(
      'UNKNOWN_TYPE',
      `"${type}" is not among the registered work types.${closestHint(type, known)} ` +
        'Pass its builder to createWork({ work: [...] }).',
      { facts: { type, closest } },
    )
  }
}

/** What is known of a type: with its handler, or only its contract. */
type Known = ContractDefinition<string, never> | WorkDefinition<string, never>

/** The work types that a system knows, with the queues they wait in. It runs those that it has a handler for. */
export class Registry {
  readonly #defs = new Map<string, WorkDefinition<string, never>>()
  /** Also those without a handler: what counts where items are enqueued. */
  readonly #known = new Map<string, Known>()
  #names: ReadonlyMap<Queue, string> = new Map()
  #hasListeners = false
  #hasSchemas = false

  constructor(types: readonly AnyWorkType[]) {
    this.#add(dependencyDefinition as Known)
    for (const type of types) {
      const given: Known = isContract(type) ? type.contract : type.def
      const known = this.#known.get(given.type)
      if (known !== undefined && !isSameType(known, given)) throw new DuplicateTypeError(given.type)
      // A contract beside its handler adds nothing.
      if (known === undefined || isRunnable(given)) this.#add(given)
    }
  }

  /**
   * The definition of work that is enqueued here; `own` is the one it was built with. A type that was never registered is
   * added now; its queue must be one that this system serves already.
   */
  meet(type: string, own: Known | undefined): Known | undefined {
    const known = this.#known.get(type)
    if (own === undefined || known === own) return known
    if (known === undefined) return this.#learn(own)
    if (!isSameType(known, own)) throw new DuplicateTypeError(type)
    return known
  }

  #learn(def: Known): Known {
    const { queue } = def.options
    if (queue !== undefined && !this.#names.has(queue)) {
      throw new MillraceError(
        'NOT_REGISTERED',
        `Work "${def.type}" has its own queue, which this system does not serve. Pass it to createWork({ work: [...] }).`,
        { facts: { type: def.type } },
      )
    }
    this.#add(def)
    return def
  }

  #add(def: Known): void {
    this.#known.set(def.type, def)
    this.#hasSchemas ||= def.options.input !== undefined
    if (!isRunnable(def)) return
    this.#defs.set(def.type, def)
    this.#hasListeners ||= def.options.onEvent !== undefined
  }

  /** Some type listens to its own events. */
  get hasListeners(): boolean {
    return this.#hasListeners
  }

  /** Types are added and never removed, so the same number means the same types. */
  get size(): number {
    return this.#defs.size
  }

  /** The types that this system has a handler for. */
  get types(): readonly string[] {
    return [...this.#defs.keys()]
  }

  /** The types that can be enqueued by name. */
  get names(): readonly string[] {
    return [...this.#known.keys()]
  }

  get definitions(): IterableIterator<WorkDefinition<string, never>> {
    return this.#defs.values()
  }

  /** The queues of types that have their own. */
  get queues(): readonly Queue[] {
    const queues = [...this.#known.values()].map((def) => def.options.queue)
    return [...new Set(queues.filter((queue) => queue !== undefined))]
  }

  /** Sets the name of each queue in the ledger. Once, when the ledger is opened. */
  named(names: ReadonlyMap<Queue, string>): void {
    this.#names = names
  }

  /** The definition that runs items of this type here. */
  find(type: string): WorkDefinition<string, never> | undefined {
    return this.#defs.get(type)
  }

  /** What counts where items of this type are enqueued, whether or not they run here. */
  known(type: string): Known | undefined {
    return this.#known.get(type)
  }

  queueOf(type: string): string {
    const own = this.#known.get(type)?.options.queue
    return (own === undefined ? undefined : this.#names.get(own)) ?? 'default'
  }

  /** Some type has a schema for its input. */
  get hasSchemas(): boolean {
    return this.#hasSchemas
  }

  /** The schema of this work's input. Work of a type that is not registered brings its definition along. */
  schemaOf(work: Work): StandardSchemaV1 | undefined {
    return (this.#known.get(work.type) ?? definitionOf(work))?.options.input
  }

  /** The name of a queue in the ledger. Undefined: this system does not serve it. */
  nameOf(queue: Queue): string | undefined {
    return this.#names.get(queue)
  }

  codecOf(type: string, fallback: JsonCodec): JsonCodec {
    return this.#known.get(type)?.options.codec ?? fallback
  }
}

function isRunnable(def: Known): def is WorkDefinition<string, never> {
  return 'run' in def
}

/** A handler and the contract that it carries out are one type. */
function isSameType(a: Known, b: Known): boolean {
  return contractOf(a) === contractOf(b)
}

function contractOf(def: Known): Known {
  return isRunnable(def) ? (def.contract ?? def) : def
}
