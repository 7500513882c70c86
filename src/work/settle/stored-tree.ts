import { NonRetryableError } from '../../core/failure/failure-errors.js'
import type { At, Ms } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import { type BuiltDependency, DEPENDENCY_TYPE, type DependencyInput } from '../define/dependency.js'
import type { DependencyCondition, GroupItem, Work, WorkInstanceOptions } from '../define/work.js'
import { type ItemOrigin, type ItemRules, type ResolvedItem, resolveItem } from '../enqueue/resolve-item.js'
import { textOf } from './group-value.js'
import type { Contribution } from './outcome.js'
import { isNode, type Link, type ResultNode } from './result-tree.js'

/**
 * Work that a gate queues when it fires, resolved when the gate was made: the process that runs the gate need not know the type.
 * Its times count from when the gate fires, unless they were given as instants.
 */
export interface StoredWork {
  readonly id: string
  readonly type: string
  /** Encoded by the type's codec. */
  readonly input: string
  readonly queue: string
  readonly delayMs?: Ms
  readonly startAt?: At
  readonly timeoutMs?: Ms
  readonly deadline?: At
  /** The rest of its envelope. */
  readonly [field: string]: unknown
}

/** An instruction that a gate carries out when it fires. */
export interface StoredNode {
  readonly kind: ResultNode['kind']
  readonly items: readonly StoredItem[]
  readonly links: readonly StoredLink[]
  readonly contribution?: Contribution
}

/** One item of a chain, as it is stored until its turn comes. */
export type StoredItem = StoredWork | StoredNode

/** An item that is not sent yet: gates and trees can still be added to it. */
export type Draft = { -readonly [K in keyof Envelope]: Envelope[K] }

/** One link of a chain, as it is stored until its condition is decided. */
export interface StoredLink {
  readonly items: readonly StoredItem[]
  readonly condition: DependencyCondition
}

export function isStoredNode(item: StoredItem): item is StoredNode {
  return Array.isArray((item as Partial<StoredNode>).items)
}

/** Stores what is queued later. Ids, options and values are fixed now: a gate that fires twice makes each item once. */
export function storedLinks(rules: ItemRules, links: readonly Link[], now: At): readonly StoredLink[] {
  return links.map(({ items, condition, itemOptions }) => ({
    items: storedItems(rules, items, itemOptions, now),
    condition,
  }))
}

function storedItems(
  rules: ItemRules,
  items: readonly GroupItem[],
  options: WorkInstanceOptions | undefined,
  now: At,
): readonly StoredItem[] {
  return items.map((item) =>
    isNode(item) ? storedNode(rules, item, now) : storedWork(rules, item as Work, options, now),
  )
}

function storedNode(rules: ItemRules, node: ResultNode, now: At): StoredNode {
  const { kind, value, options } = node
  const items = storedItems(rules, node.items, node.itemOptions, now)
  const links = storedLinks(rules, node.links, now)
  if (kind !== 'result') return { kind, items, links }
  if (options?.append !== undefined) {
    throw new NonRetryableError(
      'ctx.result(…, { append }) cannot come after .next(): a function cannot be stored until then. Append from the ' +
        'handler of a work in .next().',
    )
  }
  return {
    kind,
    items,
    links,
    contribution: { value: textOf(rules.codec, value, 'A result behind .next()'), final: options?.final === true },
  }
}

/** The work takes its group and its parent from the gate that will queue it. */
const NO_ORIGIN: ItemOrigin = Object.freeze({ groupId: '' })

function storedWork(rules: ItemRules, work: Work, options: WorkInstanceOptions | undefined, now: At): StoredWork {
  const resolved = resolveItem(rules, storable(rules, work, now), options, NO_ORIGIN, now)
  const { groupId: _, queueAt: __, attempt: ___, startAt, deadline, ...rest } = resolved.item
  return {
    ...(rest as Pick<Envelope, 'id' | 'type' | 'input'>),
    queue: resolved.queue,
    ...(resolved.isStartFixed ? { startAt } : startAt > now ? { delayMs: startAt - now } : {}),
    ...(deadline === undefined ? {} : resolved.isDeadlineFixed ? { deadline } : { timeoutMs: deadline - now }),
  }
}

/** A gate contains works, which are stored with it; any other input is stored by its own codec. */
export function storable(rules: ItemRules, work: Work, now: At): Work {
  if (work.type !== DEPENDENCY_TYPE) return work
  const built = work.input as BuiltDependency
  const input: DependencyInput = { ...built, queue: storedItems(rules, built.queue, undefined, now) }
  return { id: work.id, type: work.type, input }
}

/** The stored work as an item that is queued now. */
export function itemFromStored(rules: ItemRules, stored: StoredWork, origin: ItemOrigin, now: At): ResolvedItem {
  const { queue, delayMs = 0, startAt: fixedStart, timeoutMs, deadline: fixedDeadline, ...rest } = stored
  const startAt = fixedStart ?? now + delayMs
  const deadline = fixedDeadline ?? (timeoutMs === undefined ? undefined : now + timeoutMs)
  const { registry } = rules
  const isKnown = registry.known(stored.type) !== undefined
  return {
    item: {
      ...rest,
      ...origin,
      queueAt: now,
      startAt,
      attempt: 1,
      ...(deadline === undefined ? {} : { deadline }),
    } as Envelope,
    queue: isKnown ? registry.queueOf(stored.type) : rules.areNamesShared ? queue : 'default',
    delayMs: Math.max(0, startAt - now),
    skipQueue: false,
    isStartFixed: fixedStart !== undefined,
    isDeadlineFixed: fixedDeadline !== undefined,
  }
}

/** What these instructions contribute to the group: a later one overwrites, and the first final one stays. */
export function contributionsOf(items: readonly StoredItem[]): readonly Contribution[] {
  const contributions = items
    .filter(isStoredNode)
    .flatMap((node): readonly Contribution[] => [
      ...(node.contribution === undefined ? [] : [node.contribution]),
      ...contributionsOf(node.items),
    ])
  const last = contributions.find(({ final }) => final) ?? contributions.at(-1)
  return last === undefined ? [] : [last]
}
