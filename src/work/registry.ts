import type { StandardSchemaV1 } from '@standard-schema/spec'
import { closestName } from '../core/closest-name.js'
import type { JsonCodec } from '../core/codec.js'
import { MillraceError } from '../core/error.js'
import type { Queue } from '../ports/ports.js'
import { definitionOf } from './define-work.js'
import { dependencyDefinition } from './dependency.js'
import type { AnyWorkBuilder, Work, WorkDefinition } from './work.js'

/** Two types under one name: the second would silently take over the first one's items. */
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

/** `enqueue(name, …)` with a name that nobody registered. */
export class UnknownTypeError extends MillraceError {
  constructor(type: string, known: readonly string[]) {
    const closest = closestName(type, known)
    super(
      'UNKNOWN_TYPE',
      `"${type}" is not among the registered work types.${closest === undefined ? '' : ` Did you mean "${closest}"?`} ` +
        'Pass its builder to createWork({ work: [...] }).',
      { facts: { type, closest } },
    )
  }
}

/** The work types that a system knows, with the queues they wait in. */
export class Registry {
  readonly #defs = new Map<string, WorkDefinition<string, never>>()
  #names: ReadonlyMap<Queue, string> = new Map()
  #hasListeners = false
  #hasBatches = false
  #hasSchemas = false

  constructor(builders: readonly AnyWorkBuilder[]) {
    this.#defs.set(dependencyDefinition.type, dependencyDefinition as WorkDefinition<string, never>)
    for (const { def } of builders) {
      const known = this.#defs.get(def.type)
      if (known !== undefined && known !== def) throw new DuplicateTypeError(def.type)
      this.#defs.set(def.type, def as WorkDefinition<string, never>)
      this.#look(def as WorkDefinition<string, never>)
    }
  }

  /**
   * The definition of work that is enqueued here, `own` being the one it was built with. A type that was never registered
   * is learnt; its queue must be one that is served already.
   */
  meet(type: string, own: WorkDefinition<string, never> | undefined): WorkDefinition<string, never> | undefined {
    const known = this.#defs.get(type)
    if (own === undefined || known === own) return known
    if (known !== undefined) throw new DuplicateTypeError(type)
    return this.#learn(own)
  }

  #learn(def: WorkDefinition<string, never>): WorkDefinition<string, never> {
    const { queue } = def.options
    if (queue !== undefined && !this.#names.has(queue)) {
      throw new MillraceError(
        'NOT_REGISTERED',
        `Work "${def.type}" has a queue of its own that this system does not serve. Pass it to createWork({ work: [...] }).`,
        { facts: { type: def.type } },
      )
    }
    this.#defs.set(def.type, def)
    this.#look(def)
    return def
  }

  #look({ options: { onEvent, input }, batch }: WorkDefinition<string, never>): void {
    this.#hasBatches ||= batch !== undefined
    this.#hasListeners ||= onEvent !== undefined
    this.#hasSchemas ||= input !== undefined
  }

  /** Some type listens to its own events. */
  get hasListeners(): boolean {
    return this.#hasListeners
  }

  /** Some type is a batched one. */
  get hasBatches(): boolean {
    return this.#hasBatches
  }

  /** How many types there are. They are learnt and never forgotten: the same number means the same types. */
  get size(): number {
    return this.#defs.size
  }

  get types(): readonly string[] {
    return [...this.#defs.keys()]
  }

  get definitions(): IterableIterator<WorkDefinition<string, never>> {
    return this.#defs.values()
  }

  /** The queues of types that have one of their own. */
  get queues(): readonly Queue[] {
    const queues = [...this.#defs.values()].map((def) => def.options.queue)
    return [...new Set(queues.filter((queue) => queue !== undefined))]
  }

  /** Tells which name each queue has in the ledger. Once, when that is opened. */
  named(names: ReadonlyMap<Queue, string>): void {
    this.#names = names
  }

  find(type: string): WorkDefinition<string, never> | undefined {
    return this.#defs.get(type)
  }

  queueOf(type: string): string {
    const own = this.#defs.get(type)?.options.queue
    return (own === undefined ? undefined : this.#names.get(own)) ?? 'default'
  }

  /** Some type says what its inputs must be. */
  get hasSchemas(): boolean {
    return this.#hasSchemas
  }

  /** What the input of this work must be. Work that is queued here for the first time brings its type along. */
  schemaOf(work: Work): StandardSchemaV1 | undefined {
    return (this.#defs.get(work.type) ?? definitionOf(work))?.options.input
  }

  /** The name of a queue in the ledger. Undefined: this system does not serve it. */
  nameOf(queue: Queue): string | undefined {
    return this.#names.get(queue)
  }

  codecOf(type: string, fallback: JsonCodec): JsonCodec {
    return this.#defs.get(type)?.options.codec ?? fallback
  }
}
