import { OptionTypeError, optionsObject } from '../../core/options.js'
import type { ItemQuery } from '../../ports/inspect.js'
import type { ItemState } from '../../ports/words.js'
import type { ListFilter, WorkState, WorkStatus } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { workStateOf } from './states.js'

/** How many items one query asks the backend for. */
const PAGE = 1_000

/** How many queries one `list` makes: pages without a match cost a query too, and a ledger may hold millions of items. */
export const maxQueries = (maxStates: number): number => Math.max(100, 10 * Math.ceil(maxStates / PAGE))

/**
 * The states in which items of a status may be, in the order in which they pass through them: one that moves on between two
 * queries is found twice, not missed. What is claimed and has not started is active to the ledger and pending to callers.
 */
const STATES_OF: ReadonlyMap<WorkStatus, readonly ItemState[]> = new Map([
  ['pending', ['blocked', 'scheduled', 'retrying', 'waiting', 'active']],
  ['running', ['active']],
  ['success', ['completed']],
  ['dead', ['dead', 'cancelled']],
])

/** A filter of `list`: the queries that it needs, one after the other, and the check of what they find. */
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

/** The states that fit: all of the backend's where it can list, otherwise those that this process knows. */
export async function listItems(
  { ledger: { inspect }, known, o, recorder }: EngineContext,
  filter: ListFilter | undefined,
): Promise<WorkState[]> {
  const { queries, fits } = readFilter(filter)
  if (inspect === undefined) return (known?.list() ?? []).filter(fits)
  const here = recorder.active.begun()
  // By id: an item may move from one state to the next between two queries.
  const states = new Map<string, WorkState>()
  let queriesLeft = maxQueries(o.maxStates)
  for (const query of queries) {
    let cursor: string | undefined
    do {
      const page = await inspect.list({ ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
      for (const view of page.items) {
        const state = workStateOf(view, here)
        if (fits(state)) states.set(state.id, state)
      }
      cursor = page.next
      queriesLeft -= 1
      if (states.size >= o.maxStates || queriesLeft <= 0) return [...states.values()]
    } while (cursor !== undefined)
  }
  return [...states.values()]
}
