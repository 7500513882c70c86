import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import { type ItemState, itemState } from '../../ports/words.js'
import type { ListedItem } from '../api.js'

/** The state of an item, in the words used everywhere. */
export function stateOf(view: ItemSummary, now: At): ItemState {
  return itemState({ ...view, attempt: view.envelope.attempt }, now)
}

/** An item as lists show it. */
export function listedItem(view: ItemSummary, now: At): ListedItem {
  return { ...view, id: view.envelope.id, type: view.envelope.type, state: stateOf(view, now) }
}
