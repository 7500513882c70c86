import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Maybe } from '../../core/time.js'
import { type BuiltDependency, DEPENDENCY_TYPE } from '../dependency.js'
import { isNode, type ResultNode } from '../result-tree.js'
import type { Work } from '../work.js'
import { type CheckedInput, checkInput } from './input.js'

type SchemaOf = (work: Work) => StandardSchemaV1 | undefined

/**
 * Holds the inputs of works, and of those that gates among them hold, against their schemas. Throws, or rejects with, the
 * first that is not valid.
 */
export function checkWorks(works: Iterable<Work>, schemaOf: SchemaOf): Maybe<void> {
  const waits: Promise<CheckedInput>[] = []
  const look = (work: Work): void => {
    for (const held of heldBy(work)) look(held)
    const schema = schemaOf(work)
    if (schema === undefined) return
    const checked = checkInput(work.type, schema, work.input)
    if (checked instanceof Promise) waits.push(checked)
    else refuse(checked)
  }
  try {
    for (const work of works) look(work)
  } catch (error) {
    // It is refused already: what the others come to is nobody's concern.
    for (const wait of waits) wait.catch(() => undefined)
    throw error
  }
  if (waits.length === 0) return undefined
  return Promise.all(waits).then((all) => all.forEach(refuse))
}

/** The same for everything that a handler queues, before any of it is planned. */
export function checkQueued(root: ResultNode, schemaOf: SchemaOf): Maybe<void> {
  return checkWorks(worksOf(root, new Set()), schemaOf)
}

function* worksOf(node: ResultNode, seen: Set<ResultNode>): IterableIterator<Work> {
  if (seen.has(node)) return
  seen.add(node)
  // What comes later is looked at now, too: its handler would be the last to know.
  for (const item of [...node.items, ...node.links.flatMap(({ items }) => items)]) {
    if (isNode(item)) yield* worksOf(item, seen)
    else yield item as Work
  }
}

/** What a gate queues when it fires. */
function heldBy({ type, input }: Work): readonly Work[] {
  if (type !== DEPENDENCY_TYPE) return []
  const queue: unknown = (input as Partial<BuiltDependency> | undefined)?.queue
  return Array.isArray(queue) ? (queue as readonly Work[]) : []
}

function refuse(checked: CheckedInput): void {
  if ('problem' in checked) throw checked.problem
}
