import { FAILURE_CLASSES } from '../core/failure.js'
import {
  integerOption,
  numberOption,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../core/options.js'
import type { ItemQuery } from '../ports/ledger.js'
import { ITEM_STATE_WORDS } from '../ports/words.js'

const NAMES = ['type', 'queue', 'groupId', 'tag', 'fingerprint'] as const
/** What a person may ask of items, apart from how they are paged. */
export const FILTER_NAMES = [...NAMES, 'state', 'class', 'before', 'after'] as const

/** Which items are meant. */
export type Filters = { readonly [K in (typeof FILTER_NAMES)[number]]?: ItemQuery[K] }

const PAGE = 50
/** More than anybody reads, and no more than a process holds with ease. */
const MOST_LISTED = 10_000

/** Reads filters. A misspelt one would match everything, or nothing, without a word: it is refused. */
export function readFilters(owner: string, given: Filters): Filters {
  const read: { -readonly [K in keyof Filters]: Filters[K] } = {}
  for (const name of NAMES) if (given[name] !== undefined) read[name] = stringOption(`${owner}.${name}`, given[name])
  if (given.state !== undefined) read.state = oneOfOption(`${owner}.state`, given.state, ITEM_STATE_WORDS)
  if (given.class !== undefined) read.class = oneOfOption(`${owner}.class`, given.class, FAILURE_CLASSES)
  if (given.before !== undefined) read.before = numberOption(`${owner}.before`, given.before)
  if (given.after !== undefined) read.after = numberOption(`${owner}.after`, given.after)
  // A window that nothing can be in is a slip, and would look like an answer.
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
