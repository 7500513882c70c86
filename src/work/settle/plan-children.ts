import type { At } from '../../core/time/time.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import { type TreeMark, treeId } from '../../ports/item.js'
import { GATE_POLL_MS } from '../../ports/limits.js'
import { isTreeCondition, needOf } from '../define/condition.js'
import { DEPENDENCY_TYPE, type DependencyInput } from '../define/dependency.js'
import type { Work, WorkInstanceOptions } from '../define/work.js'
import { resolveStored, resolveWork } from '../enqueue/resolve-gate.js'
import type { ItemOrigin, ItemRules, ResolvedItem } from '../enqueue/resolve-item.js'
import type { Child, Contribution, OpenGate } from './outcome.js'
import { isNode, type ResultNode } from './result-tree.js'
import {
  contributionsOf,
  type Draft,
  isStoredNode,
  type StoredItem,
  type StoredLink,
  type StoredNode,
  type StoredWork,
  storedLinks,
} from './stored-tree.js'

/** What a returned tree wants queued. */
export interface Plan {
  readonly children: readonly Child[]
  readonly gates: readonly OpenGate[]
}

const NOTHING: Plan = Object.freeze({ children: Object.freeze([]), gates: Object.freeze([]) })

/** Turns the tree that a handler returned into children with fixed ids, so that applying it twice makes them once. */
export function planChildren(rules: ItemRules, root: ResultNode, parent: ClaimedItem, time: () => At): Plan {
  if (root.items.length === 0 && root.links.length === 0) return NOTHING
  const now = time()
  if (isFlat(root) && parent.envelope.trees === undefined) return planFlat(rules, root, parent, now)
  const planner = new TreePlanner(rules, parent.envelope, originOf(parent), now)
  planner.add(root, {
    isNode,
    add: (work: Work, options) => planner.addWork(work, options),
    links: (node) => storedLinks(rules, node.links, now),
  })
  return planner.plan()
}

/** Turns what a gate is to queue into children, once it has fired. */
export function planFired(
  rules: ItemRules,
  gate: DependencyInput,
  parent: ClaimedItem,
  now: At,
): Plan & { readonly contributions: readonly Contribution[] } {
  const { queue: items, next: links = [], on } = gate
  const planner = new TreePlanner(rules, parent.envelope, { ...originOf(parent), dependents: on }, now)
  const root: StoredNode = { kind: 'queue', items, links }
  planner.addStored(root)
  return { ...planner.plan(), contributions: contributionsOf(items) }
}

/** Only works, as in most of what handlers return. */
function isFlat(root: ResultNode): boolean {
  return root.links.length === 0 && root.items.every((item) => !isNode(item) || isFlat(item))
}

function planFlat(rules: ItemRules, root: ResultNode, parent: ClaimedItem, now: At): Plan {
  const origin = originOf(parent)
  const children: Child[] = []
  const gates: OpenGate[] = []
  const add = (work: Work, options: WorkInstanceOptions | undefined): void => {
    const { item, queue, delayMs, hold, gate } = resolveWork(rules, work, options, origin, now)
    children.push(hold === undefined ? { item, queue, delayMs } : { item, queue, delayMs, hold })
    if (gate !== undefined) gates.push(gate)
  }
  const walk = (node: ResultNode): void => {
    for (const item of node.items) {
      if (isNode(item)) walk(item)
      else add(item as Work, node.itemOptions)
    }
  }
  walk(root)
  return { children, gates }
}

function originOf({ envelope: { id, groupId, trace } }: ClaimedItem): ItemOrigin {
  return { groupId, parent: id, ...(trace === undefined ? {} : { trace }) }
}

/** What a gate waits for: an item, or a chain of them, which is over when its last link is. */
interface Member {
  readonly id: string
  /** Absent: the item that is ending now, which needs no notification. */
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
 * Turns a tree of instructions into items and the gates between them. Each gate of a chain is made by the one before it: a chain
 * that ends early leaves no gate behind that would wait forever.
 */
class TreePlanner {
  readonly #rules: ItemRules
  readonly #parent: Envelope
  readonly #origin: ItemOrigin
  readonly #now: At
  readonly #children: Child[] = []
  /** By id: a work that is listed twice is one item. */
  readonly #drafts = new Map<string, Draft>()
  readonly #gates: OpenGate[] = []

  constructor(rules: ItemRules, parent: Envelope, origin: ItemOrigin, now: At) {
    this.#rules = rules
    this.#parent = parent
    this.#origin = origin
    this.#now = now
  }

  addWork(work: Work, options: WorkInstanceOptions | undefined): Member {
    return this.#born(resolveWork(this.#rules, work, options, this.#origin, this.#now))
  }

  addStored(node: StoredNode): void {
    this.add<StoredNode, StoredItem, StoredWork>(node, {
      ...STORED,
      add: (stored) => this.#born(resolveStored(this.#rules, stored, this.#origin, this.#now)),
    })
  }

  /** Adds what a node queues now; what follows goes into its gate. Returns what to wait for. */
  add<N extends Tree<I>, I, W extends I>(node: N, reading: Reading<N, I, W>): readonly Member[] {
    const begun = node.items.flatMap((item): readonly Member[] =>
      reading.isNode(item) ? this.add(item, reading) : [reading.add(item as W, node.itemOptions)],
    )
    const [link, ...rest] = reading.links(node)
    if (link === undefined) return begun
    // Nothing was queued before: the gate waits for the item itself.
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
    return this.#born(resolveStored(this.#rules, { ...stored, retry }, this.#origin, this.#now))
  }

  /**
   * The parent is part of trees that gates wait for, and queues more: from now on it counts by the id of its tree, which is a
   * gate that waits for the trees of all children.
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
