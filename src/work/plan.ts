import type { At } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Effect } from '../ports/settlement.js'
import type { Child } from './outcome.js'
import { type ItemRules, resolveItem } from './resolve-item.js'
import { isNode, type ResultNode } from './result-tree.js'
import type { Work, WorkInstanceOptions } from './work.js'

/** What a returned tree wants queued. */
export interface Plan {
  readonly children: readonly Child[]
  readonly gates: readonly Extract<Effect, { readonly do: 'openGate' }>[]
}

const NOTHING: Plan = Object.freeze({ children: Object.freeze([]), gates: Object.freeze([]) })

/** Turns the tree that a handler returned into children with fixed ids, so that applying it twice makes them once. */
export function planChildren(rules: ItemRules, root: ResultNode, parent: Claimed, now: At): Plan {
  if (root.items.length === 0) return NOTHING
  const { id, groupId, trace } = parent.envelope
  const place = { groupId, parent: id, ...(trace === undefined ? {} : { trace }) }
  const children: Child[] = []
  const add = (work: Work, options: WorkInstanceOptions | undefined): void => {
    const { item, queue, delayMs } = resolveItem(rules, work, options, place, now)
    children.push({ item, queue, delayMs })
  }
  const walk = (node: ResultNode): void => {
    for (const item of node.items) {
      if (isNode(item)) walk(item)
      else add(item as Work, node.itemOptions)
    }
  }
  walk(root)
  return { children, gates: [] }
}
