import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JsonCodec } from '../../core/codec/codec.js'
import { MillraceError } from '../../core/error.js'
import { closestName } from '../../core/text/closest-name.js'
import type { Queue } from '../../ports/ports.js'
import { definitionOf } from './define-work.js'
import { dependencyDefinition } from './dependency.js'
import type { AnyWorkBuilder, Work, WorkDefinition } from './work.js'

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
  #hasSchemas = false

  constructor(builders: readonly AnyWorkBuilder[]) {
    this.#defs.set(dependencyDefinition.type, dependencyDefinition as WorkDefinition<string, never>)
    for (const { def } of builders) {
      const known = this.#defs.get(def.type)
      if (known !== undefined && known !== def) throw new DuplicateTypeError(def.type)
      this.#defs.set(def.type, def as WorkDefinition<string, never>)
      this.#note(def as WorkDefinition<string, never>)
    }
  }

  /**
   * The definition of work that is enqueued here; `own` is the one it was built with. A type that was never registered is
   * added now; its queue must be one that this system serves already.
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
        `Work "${def.type}" has its own queue, which this system does not serve. Pass it to createWork({ work: [...] }).`,
        { facts: { type: def.type } },
      )
    }
    this.#defs.set(def.type, def)
    this.#note(def)
    return def
  }

  #note({ options: { onEvent, input } }: WorkDefinition<string, never>): void {
    this.#hasListeners ||= onEvent !== undefined
    this.#hasSchemas ||= input !== undefined
  }

  /** Some type listens to its own events. */
  get hasListeners(): boolean {
    return this.#hasListeners
  }

  /** Types are added and never removed, so the same number means the same types. */
  get size(): number {
    return this.#defs.size
  }

  get types(): readonly string[] {
    return [...this.#defs.keys()]
  }

  get definitions(): IterableIterator<WorkDefinition<string, never>> {
    return this.#defs.values()
  }

  /** The queues of types that have their own. */
  get queues(): readonly Queue[] {
    const queues = [...this.#defs.values()].map((def) => def.options.queue)
    return [...new Set(queues.filter((queue) => queue !== undefined))]
  }

  /** Sets the name of each queue in the ledger. Once, when the ledger is opened. */
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

  /** Some type has a schema for its input. */
  get hasSchemas(): boolean {
    return this.#hasSchemas
  }

  /** The schema of this work's input. Work of a type that is not registered brings its definition along. */
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
