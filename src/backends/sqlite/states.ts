import type { ItemStatus } from '../../ports/item.js'

/** The column `state`: the position in `ITEM_STATES`. */
export const WAITING = 0
export const SCHEDULED = 1
export const RETRYING = 2
export const BLOCKED = 3
export const ACTIVE = 4
export const COMPLETED = 5
export const DEAD = 6
export const CANCELLED = 7

const STATUSES: readonly ItemStatus[] = [
  'pending',
  'pending',
  'pending',
  'pending',
  'running',
  'completed',
  'dead',
  'dead',
]

export const statusOf = (state: number): ItemStatus => STATUSES[state] ?? 'pending'

/** The column `flags`. */
export const GATED = 1
export const HAS_GATE = 2
export const SINGLE = 4
export const WATCHED = 8
export const HAS_TAGS = 16
export const HAS_ATTEMPTS = 32
