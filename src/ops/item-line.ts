import type { At } from '../core/time.js'
import type { ItemSummary } from '../ports/ledger.js'
import { type ItemStateWord, stateWord } from '../ports/words.js'
import type { ItemLine } from './api.js'

/** Where an item stands, in the word that everything uses. */
export function stateOf(view: ItemSummary, now: At): ItemStateWord {
  return stateWord({ ...view, attempt: view.envelope.attempt }, now)
}

/** An item as lists show it. */
export function lineOf(view: ItemSummary, now: At): ItemLine {
  return { ...view, id: view.envelope.id, type: view.envelope.type, state: stateOf(view, now) }
}
