import type { At } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'
import type { Verb } from '../api.js'
import { stateOf } from '../item-line.js'

/** Where an action looks for what it takes. */
export interface VerbRule {
  /**
   * In this order. What `runNow` lets run may fail and be retried, so that it looks at retries first: no item is let run twice
   * by one action.
   */
  readonly states: readonly ItemStateWord[]
  /** Taken too, but only when the query names them. */
  readonly onRequest: readonly ItemStateWord[]
  /** Items move between these states while it looks: it looks again until a whole round has found none. */
  readonly isRepeated: boolean
  /** What it takes, for people. */
  readonly takes: string
}

export const VERBS: Readonly<Record<Verb, VerbRule>> = Object.freeze({
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

/** Whether the action has anything to do about an item as it stands. */
export function doesTake(verb: Verb, view: ItemSummary, now: At): boolean {
  switch (verb) {
    case 'redrive':
    case 'discard':
      return view.status === 'dead'
    case 'cancel':
      return view.status === 'pending' || (view.status === 'running' && view.cancelled === undefined)
    case 'runNow': {
      // Let go by a pause, it would be set aside again by the next claim that meets it.
      if (view.hold?.by === 'pause') return false
      const state = stateOf(view, now)
      return state === 'retrying' || state === 'scheduled' || state === 'blocked'
    }
  }
}
