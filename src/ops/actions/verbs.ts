import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { ItemState } from '../../ports/words.js'
import type { BulkVerb } from '../api.js'
import { stateOf } from '../items/listed-item.js'

/** Which items an action applies to. */
export interface VerbRule {
  /**
   * Searched in this order. An item released by `runNow` may fail and be retried, so retries come first: one action releases no
   * item twice.
   */
  readonly states: readonly ItemState[]
  /** Included only when the query names them. */
  readonly onRequest: readonly ItemState[]
  /** Items move between these states meanwhile: the search repeats until a whole round finds nothing. */
  readonly isRepeated: boolean
  /** The same in words, for messages. */
  readonly takes: string
}

export const VERBS: Readonly<Record<BulkVerb, VerbRule>> = Object.freeze({
  redrive: { states: ['dead'], onRequest: ['cancelled'], isRepeated: false, takes: 'dead items' },
  discard: { states: ['dead'], onRequest: ['cancelled'], isRepeated: false, takes: 'dead items' },
  cancel: {
    states: ['waiting', 'scheduled', 'retrying', 'blocked', 'active'],
    onRequest: [],
    isRepeated: true,
    takes: 'items that have not ended',
  },
  runNow: {
    states: ['retrying', 'scheduled', 'blocked'],
    onRequest: [],
    isRepeated: false,
    takes: 'items that are scheduled, retrying or held',
  },
})

/** Whether the action applies to an item in its current state. */
export function doesTake(verb: BulkVerb, view: ItemSummary, now: At): boolean {
  switch (verb) {
    case 'redrive':
    case 'discard':
      return view.status === 'dead'
    case 'cancel':
      return view.status === 'pending' || (view.status === 'running' && view.cancelReason === undefined)
    case 'runNow': {
      // Released from a pause, it would be held again by the next claim.
      if (view.hold?.by === 'pause') return false
      const state = stateOf(view, now)
      return state === 'retrying' || state === 'scheduled' || state === 'blocked'
    }
  }
}
