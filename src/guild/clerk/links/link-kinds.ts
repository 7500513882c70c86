import { describeValue } from '../../../core/text/describe-value.js'
import type { KitEntry } from '../../host/plugin.js'
import { RegistrationError, UnknownLinkKindError } from '../errors.js'

/** A meaning that a link can carry for a plugin. */
export interface LinkKind {
  /** `<plugin>.<name>`, such as `spider.follows`. */
  readonly id: string
  readonly ownerPlugin: string
  readonly description: string
}

/** What a plugin contributes under `linkKinds`: an array of these. */
export interface LinkKindContribution {
  /** `<id of the contributing plugin>.<name in kebab-case>` */
  readonly id: string
  readonly description: string
}

/** The kinds of a guild, from all contributions. */
export class LinkKinds {
  readonly #kinds = new Map<string, LinkKind>()

  constructor(entries: readonly KitEntry[]) {
    for (const { pluginId, value } of entries) {
      if (!Array.isArray(value))
        throw new RegistrationError(`"${pluginId}" contributes linkKinds that are no array.`, { pluginId })
      for (const kind of value) this.#add(pluginId, kind)
    }
  }

  list(): LinkKind[] {
    return [...this.#kinds.values()]
  }

  /** The kind itself, when it is one. */
  check(kind: unknown): string {
    if (typeof kind === 'string' && this.#kinds.has(kind)) return kind
    throw new UnknownLinkKindError(kind, [...this.#kinds.keys()])
  }

  #add(ownerPlugin: string, kind: unknown): void {
    const { id, description } = (kind ?? {}) as { readonly id?: unknown; readonly description?: unknown }
    const prefix = `${ownerPlugin}.`
    if (typeof id !== 'string' || !id.startsWith(prefix) || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id.slice(prefix.length))) {
      throw new RegistrationError(
        `The link kind ${describeValue(id)} of "${ownerPlugin}" must be called "${prefix}" and a name in kebab-case.`,
        { ownerPlugin },
      )
    }
    if (typeof description !== 'string' || description === '') {
      throw new RegistrationError(`The link kind "${id}" needs a description: a non-empty string.`, { id })
    }
    if (this.#kinds.has(id)) throw new RegistrationError(`The link kind "${id}" is contributed twice.`, { id })
    this.#kinds.set(id, Object.freeze({ id, ownerPlugin, description }))
  }
}
