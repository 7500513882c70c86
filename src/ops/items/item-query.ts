import { FAILURE_CLASSES } from '../../core/failure/failure.js'
import {
  integerOption,
  numberOption,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import type { ItemQuery } from '../../ports/inspect.js'
import { ITEM_STATES } from '../../ports/words.js'

const NAMES = ['type', 'queue', 'groupId', 'tag', 'fingerprint'] as const
/** The filters of a query, without paging. */
export const FILTER_NAMES = [...NAMES, 'state', 'class', 'before', 'after'] as const

/** Which items to select. */
export type Filters = { readonly [K in (typeof FILTER_NAMES)[number]]?: ItemQuery[K] }

const PAGE = 50
/** More than a person reads, and little enough to hold in memory. */
const MOST_LISTED = 10_000

/** Reads filters. A misspelt one is rejected, because it would silently match everything or nothing. */
export function readFilters(owner: string, given: Filters): Filters {
  const read: { -readonly [K in keyof Filters]: Filters[K] } = {}
  for (const name of NAMES) if (given[name] !== undefined) read[name] = stringOption(`${owner}.${name}`, given[name])
  if (given.state !== undefined) read.state = oneOfOption(`${owner}.state`, given.state, ITEM_STATES)
  if (given.class !== undefined) read.class = oneOfOption(`${owner}.class`, given.class, FAILURE_CLASSES)
  if (given.before !== undefined) read.before = numberOption(`${owner}.before`, given.before)
  if (given.after !== undefined) read.after = numberOption(`${owner}.after`, given.after)
  // An empty period is a mistake whose empty result would look like an answer.
  if (read.after !== undefined && read.before !== undefined && read.after >= read.before)
    throw new OptionTypeError(`${owner}.after`, 'earlier than `before`', given.after)
  return read
}

export function readListQuery(query: Partial<ItemQuery> | undefined): ItemQuery {
  const given = optionsObject('list', query, [...FILTER_NAMES, 'cursor', 'limit'])
  return {
    ...readFilters('list', given),
    limit: integerOption('list.limit', given.limit, { min: 1, max: MOST_LISTED, default: PAGE }),
    ...(given.cursor === undefined ? {} : { cursor: stringOption('list.cursor', given.cursor) }),
  }
}
