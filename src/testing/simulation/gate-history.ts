import { topOf } from '../../ports/item.js'
import type { Effect } from '../../ports/settlement.js'
import { DEPENDENCY_TYPE } from '../../work/define/dependency.js'
import type { ItemHistory } from './history.js'

type OpenGate = Extract<Effect, { readonly do: 'openGate' }>

/** What has become of a member so far: of an item, or of everything below it. */
type Standing = 'open' | 'good' | 'bad'

/**
 * The gates of a world, reckoned from what happened to their members and from nothing that the backend counted. A tree has
 * ended when the item at its top has, and the trees of all that were born of it.
 */
export class GateHistory {
  readonly #items: ReadonlyMap<string, ItemHistory>
  readonly #byHeld = new Map<string, OpenGate>()
  /** Items by their parent, without those that only represent a tree. */
  readonly #children = new Map<string, ItemHistory[]>()

  constructor(items: ReadonlyMap<string, ItemHistory>) {
    this.#items = items
  }

  opened(gate: OpenGate): void {
    if (!this.#byHeld.has(gate.heldId)) this.#byHeld.set(gate.heldId, gate)
  }

  born(item: ItemHistory): void {
    if (item.bornOf === undefined || topOf(item.id) !== undefined) return
    const siblings = this.#children.get(item.bornOf)
    if (siblings === undefined) this.#children.set(item.bornOf, [item])
    else if (!siblings.includes(item)) siblings.push(item)
  }

  /** What is wrong with a gate that ends now, if anything is. */
  fault(item: ItemHistory, ending: string, error: string | undefined): string | undefined {
    const gate = this.#byHeld.get(item.id)
    if (gate === undefined) return undefined
    const members = [...new Set(gate.members)].map((member) => this.#standing(member, gate.of))
    const good = members.filter((standing) => standing === 'good').length
    const ended = members.filter((standing) => standing !== 'open').length
    const need = gate.need - (gate.of === 'done' ? ended : good)
    const counts = `${good} good, ${ended} ended of ${members.length}, needs ${gate.need} ${gate.of}`
    if (ending === 'done' && need > 0) return `${item.id} fired before its condition was met (${counts})`
    const isImpossible = error?.includes('cannot be satisfied') === true
    if (isImpossible && need <= members.length - ended) return `${item.id} gave up while it could be met (${counts})`
    return undefined
  }

  #standing(member: string, of: OpenGate['of']): Standing {
    const top = topOf(member)
    return top === undefined ? this.#ofItem(member) : this.#ofTree(top, of)
  }

  #ofItem(id: string): Standing {
    const item = this.#items.get(id)
    if (item?.hasEnded !== true) return 'open'
    return item.ends.at(-1)?.ending === 'completed' ? 'good' : 'bad'
  }

  #ofTree(id: string, of: OpenGate['of']): Standing {
    const below = (this.#children.get(id) ?? []).map((child) => this.#ofTree(child.id, of))
    const all = [this.#ofItem(id), ...below]
    // `success` is decided by the first failure; `done` waits for the last end.
    if (of === 'success' && all.includes('bad')) return 'bad'
    if (all.includes('open')) return 'open'
    return all.includes('bad') ? 'bad' : 'good'
  }
}

/** Gates are run by the engine itself: no handler of theirs is ever seen. */
export const isGate = ({ type }: ItemHistory): boolean => type === DEPENDENCY_TYPE
