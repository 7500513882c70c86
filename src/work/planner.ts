import type { At } from '../core/time.js'
import type { Envelope } from '../ports/item.js'
import { type TreeMark, treeId } from '../ports/tree.js'
import { isTreeCondition, needOf } from './condition.js'
import { DEPENDENCY_TYPE, type DependencyInput, GATE_POLL_MS } from './dependency.js'
import type { Child, OpenGate } from './outcome.js'
import { resolveStored, resolveWork } from './resolve-gate.js'
import type { ItemRules, Place, ResolvedItem } from './resolve-item.js'
import {
  type Draft,
  isStoredNode,
  type StoredItem,
  type StoredLink,
  type StoredNode,
  type StoredWork,
} from './stored-tree.js'
import type { Work, WorkInstanceOptions } from './work.js'

/** What a gate waits for: an item, or a chain of them, which is over when its last link is. */
interface Member {
  readonly id: string
  /** Absent: the item that is ending now, and needs no telling. */
  readonly item?: Draft
  readonly isChain?: boolean
}

interface Tree<I> {
  readonly kind: 'result' | 'queue' | 'void'
  readonly items: readonly I[]
  readonly itemOptions?: WorkInstanceOptions | undefined
}

/** How to read a tree, whether a handler returned it or a gate stored it. */
interface Reading<N extends Tree<I>, I, W extends I> {
  isNode(item: I): item is I & N
  add(work: W, options: WorkInstanceOptions | undefined): Member
  links(node: N): readonly StoredLink[]
}

const STORED = { isNode: isStoredNode, links: ({ links }: StoredNode) => links }

/**
 * Turns a tree of instructions into items and the gates between them. The gates of one chain are made one after the other,
 * each by the one before it: a chain that ends early leaves none behind that would wait for what never comes.
 */
export class Planner {
  readonly #rules: ItemRules
  readonly #parent: Envelope
  readonly #place: Place
  readonly #now: At
  readonly #children: Child[] = []
  /** By id: a work that is listed twice is one item, and counts once. */
  readonly #drafts = new Map<string, Draft>()
  readonly #gates: OpenGate[] = []

  constructor(rules: ItemRules, parent: Envelope, place: Place, now: At) {
    this.#rules = rules
    this.#parent = parent
    this.#place = place
    this.#now = now
  }

  addWork(work: Work, options: WorkInstanceOptions | undefined): Member {
    return this.#born(resolveWork(this.#rules, work, options, this.#place, this.#now))
  }

  addStored(node: StoredNode): void {
    this.add<StoredNode, StoredItem, StoredWork>(node, {
      ...STORED,
      add: (stored) => this.#born(resolveStored(this.#rules, stored, this.#place, this.#now)),
    })
  }

  /** Adds everything of a node that begins now; what comes after goes into its gate. Answers what to wait for. */
  add<N extends Tree<I>, I, W extends I>(node: N, reading: Reading<N, I, W>): readonly Member[] {
    const begun = node.items.flatMap((item): readonly Member[] =>
      reading.isNode(item) ? this.add(item, reading) : [reading.add(item as W, node.itemOptions)],
    )
    const [link, ...rest] = reading.links(node)
    if (link === undefined) return begun
    // Before anything was queued there is only the item itself.
    const frontier = node.kind === 'queue' ? begun : [{ id: this.#parent.id }]
    return [this.#addGate(frontier, link, rest)]
  }

  plan(): { readonly children: readonly Child[]; readonly gates: readonly OpenGate[] } {
    this.#joinTrees()
    return { children: this.#children, gates: this.#gates }
  }

  #born(resolved: ResolvedItem): Member {
    const { item, queue, delayMs, hold, gate } = resolved
    const known = this.#drafts.get(item.id)
    if (known !== undefined) return { id: known.id, item: known }
    this.#drafts.set(item.id, item)
    this.#children.push({ item, queue, delayMs, ...(hold === undefined ? {} : { hold }) })
    if (gate !== undefined) this.#gates.push(gate)
    return { id: item.id, item }
  }

  #addGate(listed: readonly Member[], { items, condition }: StoredLink, next: readonly StoredLink[]): Member {
    const frontier = [...new Map(listed.map((member) => [member.id, member])).values()]
    const key = this.#rules.newId()
    const { of } = needOf(condition, 0)
    const isTree = isTreeCondition(condition)
    const members = frontier.map(({ id, item, isChain }) => {
      if (item === undefined) return id
      if (isTree || isChain) {
        item.trees = [...(item.trees ?? []), { key, of }]
        return treeId(id, of)
      }
      item.gates = [...(item.gates ?? []), key]
      return id
    })
    const on = frontier.map(({ id }) => id)
    const isOther = members.some((member, i) => member !== on[i])
    const input: DependencyInput = {
      key,
      on,
      ...(isOther ? { members } : {}),
      queue: items,
      config: condition,
      poll: GATE_POLL_MS,
      ...(next.length === 0 ? {} : { next }),
    }
    return { ...this.#addGateItem(this.#rules.newId(), input), isChain: true }
  }

  #addGateItem(id: string, input: DependencyInput): Member {
    const stored = {
      id,
      type: DEPENDENCY_TYPE,
      input: JSON.stringify(input),
      queue: 'default',
      priority: 0,
      v: 1 as const,
    }
    const retry = { attempts: 1 }
    return this.#born(resolveStored(this.#rules, { ...stored, retry }, this.#place, this.#now))
  }

  /**
   * The parent is part of trees that gates wait for, and queues more: it now counts under the name of its tree, which is
   * that of an item waiting for the trees of all children.
   */
  #joinTrees(): void {
    const { id, trees = [] } = this.#parent
    const children = [...this.#drafts.values()]
    if (children.length === 0) return
    for (const of of new Set(trees.map((tree) => tree.of))) {
      const key = this.#rules.newId()
      for (const child of children) child.trees = [...(child.trees ?? []), { key, of }]
      const on = children.map((child) => child.id)
      const members = on.map((child) => treeId(child, of))
      const when = of === 'success' ? 'all-success' : 'all-done'
      const config = { of: 'tree', when } as const
      const input: DependencyInput = { key, on, members, queue: [], config, poll: GATE_POLL_MS }
      const { item } = this.#addGateItem(treeId(id, of), input)
      if (item !== undefined) item.gates = keysOf(trees, of)
    }
  }
}

function keysOf(trees: readonly TreeMark[], of: TreeMark['of']): readonly string[] {
  return trees.filter((tree) => tree.of === of).map(({ key }) => key)
}
