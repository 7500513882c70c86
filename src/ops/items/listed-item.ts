import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import { type ItemState, itemState } from '../../ports/words.js'
import type { ListedItem } from '../api.js'

/** The state of an item, in the words used everywhere. */
export function stateOf(view: ItemSummary, now: At): ItemState {
  return itemState({ ...view, attempt: view.envelope.attempt }, now)
}

/** An item as lists show it. Being cancelled is no failure, so a cancelled item has no class, whatever the ledger stores with its end. */
export function listedItem(view: ItemSummary, now: At): ListedItem {
  const { class: failureClass, ...rest } = view
  const state = stateOf(view, now)
  return {
    ...rest,
    ...(failureClass === undefined || state === 'cancelled' ? {} : { class: failureClass }),
    id: view.envelope.id,
    type: view.envelope.type,
    state,
  }
}
