import type { At } from '../../core/time/time.js'
import type { ItemQuery } from '../../ports/inspect.js'
import type { EnvelopeHead } from '../../ports/item.js'
import type { ItemState } from '../../ports/words.js'

type Filters = Omit<ItemQuery, 'limit' | 'cursor'>
export type IndexedField = 'groupId' | 'fingerprint' | 'tag' | 'class'

/** What a query can ask of an item. */
export interface QueriedItem {
  readonly envelope: Pick<EnvelopeHead, 'type' | 'groupId' | 'tags' | 'queueAt'>
  readonly queue?: string | undefined
  readonly class?: string | undefined
  readonly fingerprint?: string | null | undefined
  readonly endAt?: At | undefined
}

/** `state` is passed where the lists that were read can hold items of other states. */
export function matchesQuery(item: QueriedItem, query: Filters, state = query.state as ItemState | undefined): boolean {
  const { envelope } = item
  const at = item.endAt ?? envelope.queueAt
  return (
    (query.state === undefined || state === query.state) &&
    (query.type === undefined || envelope.type === query.type) &&
    (query.queue === undefined || item.queue === query.queue) &&
    (query.groupId === undefined || envelope.groupId === query.groupId) &&
    (query.tag === undefined || envelope.tags?.includes(query.tag) === true) &&
    (query.class === undefined || item.class === query.class) &&
    (query.fingerprint === undefined || item.fingerprint === query.fingerprint) &&
    (query.before === undefined || at < query.before) &&
    (query.after === undefined || at >= query.after)
  )
}

/** The narrowest first: a group has few items, and there are more items of a class than of a fingerprint. */
const NARROWEST_FIRST: readonly IndexedField[] = ['groupId', 'fingerprint', 'tag', 'class']

/** The index to read for a query, of those that the backend has. Undefined: read queue and type by queue and type. */
export function narrowestIndex<Field extends IndexedField>(
  query: Filters,
  indexed: readonly Field[],
): Field | undefined {
  return (NARROWEST_FIRST as readonly Field[]).find((field) => query[field] !== undefined && indexed.includes(field))
}
