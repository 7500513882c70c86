import type { ItemStatus } from '../../ports/item.js'
import { ITEM_STATES, type ItemState } from '../../ports/words.js'

/** The column `state` of every schema: the position of the word in `ITEM_STATES`. */
export const WAITING = 0
export const SCHEDULED = 1
export const RETRYING = 2
export const BLOCKED = 3
export const ACTIVE = 4
export const COMPLETED = 5
export const DEAD = 6
export const CANCELLED = 7

const STATUSES: Readonly<Record<ItemState, ItemStatus>> = {
  waiting: 'pending',
  scheduled: 'pending',
  retrying: 'pending',
  blocked: 'pending',
  active: 'running',
  completed: 'completed',
  dead: 'dead',
  cancelled: 'dead',
}

export const statusOf = (code: number): ItemStatus => STATUSES[ITEM_STATES[code] ?? 'waiting']
