import type { JsonCodec } from '../../core/codec/codec.js'
import { MillraceError } from '../../core/error.js'
import type { GroupValue } from '../../ports/settlement.js'
import type { Contribution } from './outcome.js'
import { isNode, type ResultNode } from './result-tree.js'

const NONE: readonly never[] = []

/** The result nodes of a tree, in order: each contributes to the group's value. */
export function contributors(root: ResultNode): readonly ResultNode[] {
  if (root.kind === 'result') return [root]
  if (root.items.length === 0) return NONE
  const found: ResultNode[] = []
  const walk = (node: ResultNode): void => {
    if (node.kind === 'result') found.push(node)
    for (const item of node.items) if (isNode(item)) walk(item)
  }
  walk(root)
  return found
}

/** Whether the new value depends on the value so far. */
export function needsFold(nodes: readonly ResultNode[]): boolean {
  return nodes.some((node) => node.options?.append !== undefined)
}

/**
 * Folds contributions into one: a later one overwrites, `append` folds, and the first `final` locks. `now` is the group's
 * value so far, needed only for `append`; the fold then counts for exactly that version.
 */
export function fold(
  nodes: readonly ResultNode[],
  codec: JsonCodec,
  now: GroupValue | undefined,
): readonly Contribution[] {
  if (nodes.length === 0) return NONE
  let value = now?.value
  let isFinal = now?.final ?? false
  let hasChanged = false
  for (const node of nodes) {
    if (isFinal) break
    const { append, final } = node.options ?? {}
    const next = append === undefined ? node.value : append(value === undefined ? undefined : codec.parse(value))
    value = textOf(codec, next, 'The value for the group')
    isFinal = final === true
    hasChanged = true
  }
  if (!hasChanged || value === undefined) return []
  return [{ value, final: isFinal, ...(needsFold(nodes) ? { ifVersion: now?.version ?? 0 } : {}) }]
}

/** What a handler returned could not be encoded. Running it again would not change that. */
export class ResultEncodeError extends MillraceError {
  constructor(what: string, cause: unknown) {
    super('ENCODE_FAILED', `${what} could not be encoded: ${String(cause)} Return data that its codec can write.`, {
      cause,
    })
  }
}

/** Encodes a value. A codec that returns no text would silently lose it. */
export function textOf(codec: JsonCodec, value: unknown, what: string): string {
  let text: unknown
  try {
    text = codec.stringify(value)
  } catch (error) {
    throw new ResultEncodeError(what, error)
  }
  if (typeof text === 'string') return text
  throw new ResultEncodeError(what, `stringify must return a string, and returned ${typeof text}.`)
}
