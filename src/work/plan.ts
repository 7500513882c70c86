import type { At } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { DependencyInput } from './dependency.js'
import type { Child, Contribution, OpenGate } from './outcome.js'
import { Planner } from './planner.js'
import { resolveWork } from './resolve-gate.js'
import type { ItemRules, Place } from './resolve-item.js'
import { isNode, type ResultNode } from './result-tree.js'
import { type StoredNode, saidBy, storedLinks } from './stored-tree.js'
import type { Work, WorkInstanceOptions } from './work.js'

/** What a returned tree wants queued. */
export interface Plan {
  readonly children: readonly Child[]
  readonly gates: readonly OpenGate[]
}

const NOTHING: Plan = Object.freeze({ children: Object.freeze([]), gates: Object.freeze([]) })

/** Turns the tree that a handler returned into children with fixed ids, so that applying it twice makes them once. */
export function planChildren(rules: ItemRules, root: ResultNode, parent: Claimed, now: At): Plan {
  if (root.items.length === 0 && root.links.length === 0) return NOTHING
  if (isFlat(root) && parent.envelope.trees === undefined) return planFlat(rules, root, parent, now)
  const planner = new Planner(rules, parent.envelope, placeOf(parent), now)
  planner.add(root, {
    isNode,
    add: (work: Work, options) => planner.addWork(work, options),
    links: (node) => storedLinks(rules, node.links, now),
  })
  return planner.plan()
}

/** Turns what a gate was told to queue into children, once it has fired. */
export function planFired(
  rules: ItemRules,
  gate: DependencyInput,
  parent: Claimed,
  now: At,
): Plan & { readonly contributions: readonly Contribution[] } {
  const { queue: items, next: links = [], on } = gate
  const planner = new Planner(rules, parent.envelope, { ...placeOf(parent), dependents: on }, now)
  const root: StoredNode = { kind: 'queue', items, links }
  planner.addStored(root)
  return { ...planner.plan(), contributions: saidBy(items) }
}

/** Nothing but works: most of what handlers return. */
function isFlat(root: ResultNode): boolean {
  return root.links.length === 0 && root.items.every((item) => !isNode(item) || isFlat(item))
}

function planFlat(rules: ItemRules, root: ResultNode, parent: Claimed, now: At): Plan {
  const place = placeOf(parent)
  const children: Child[] = []
  const gates: OpenGate[] = []
  const add = (work: Work, options: WorkInstanceOptions | undefined): void => {
    const { item, queue, delayMs, hold, gate } = resolveWork(rules, work, options, place, now)
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

function placeOf({ envelope: { id, groupId, trace } }: Claimed): Place {
  return { groupId, parent: id, ...(trace === undefined ? {} : { trace }) }
}
