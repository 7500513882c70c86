import type { At } from '../core/time/time.js'
import type { Ending, Hold, ItemStatus } from './item.js'

/** The words that store, metrics, command line and page all use for where an item stands. */
export type ItemState = 'blocked' | 'scheduled' | 'retrying' | 'waiting' | 'active' | 'completed' | 'dead' | 'cancelled'

/** Every state word, in the order in which tables show them. */
export const ITEM_STATES: readonly ItemState[] = Object.freeze([
  'waiting',
  'scheduled',
  'retrying',
  'blocked',
  'active',
  'completed',
  'dead',
  'cancelled',
])

/** The one table of states. Everything that names a state to a person calls this. */
export function itemState(
  item: {
    readonly status: ItemStatus
    readonly attempt: number
    readonly ending?: Ending
    readonly hold?: Hold
    readonly dueAt?: At
  },
  now: At,
): ItemState {
  switch (item.status) {
    case 'pending':
      if (item.hold !== undefined) return 'blocked'
      if (item.dueAt !== undefined && item.dueAt > now) return item.attempt > 1 ? 'retrying' : 'scheduled'
      return 'waiting'
    case 'running':
      return 'active'
    case 'completed':
      return 'completed'
    case 'dead':
      return item.ending === 'cancelled' ? 'cancelled' : 'dead'
  }
}

/** The item has ended: it is neither waiting nor running. */
export function hasEnded(status: ItemStatus): boolean {
  return status === 'completed' || status === 'dead'
}
