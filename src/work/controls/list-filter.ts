import { OptionTypeError, optionsObject } from '../../core/options.js'
import type { ItemQuery } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'
import type { ListFilter, WorkState, WorkStatus } from '../work.js'

/** How many items a backend is asked for at once. */
export const PAGE = 1_000

/**
 * How many pages one `list` looks at: what has no index, or does not fit, costs a look too, and a ledger may hold millions.
 */
export const looksAt = (maxStates: number): number => Math.max(100, 10 * Math.ceil(maxStates / PAGE))

/**
 * Where items of a status may stand, in the order in which they pass through: one that moves on meanwhile is seen twice, not
 * missed. What is held and has not begun is active to the ledger and pending to everybody else.
 */
const STATES_OF: ReadonlyMap<WorkStatus, readonly ItemStateWord[]> = new Map([
  ['pending', ['blocked', 'scheduled', 'retrying', 'waiting', 'active']],
  ['running', ['active']],
  ['success', ['completed']],
  ['dead', ['dead', 'cancelled']],
])

/** A filter of `list`: what a backend is asked for, one after the other, and what is looked at here. */
export interface ReadFilter {
  readonly queries: readonly Pick<ItemQuery, 'state' | 'type' | 'tag'>[]
  readonly fits: (state: WorkState) => boolean
}

export function readFilter(filter: ListFilter | undefined): ReadFilter {
  const { type, tag, status } = optionsObject<ListFilter>('list', filter, ['type', 'tag', 'status'])
  for (const [name, value] of Object.entries({ type, tag, status })) {
    if (value !== undefined && typeof value !== 'string') throw new OptionTypeError(`list.${name}`, 'a string', value)
  }
  const query = { ...(type === undefined ? {} : { type }), ...(tag === undefined ? {} : { tag }) }
  return {
    queries: status === undefined ? [query] : (STATES_OF.get(status) ?? []).map((state) => ({ ...query, state })),
    fits: (state) =>
      (type === undefined || state.type === type) &&
      (tag === undefined || state.tags?.includes(tag) === true) &&
      (status === undefined || state.status === status),
  }
}
