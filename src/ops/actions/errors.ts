import { MillraceError } from '../../core/error.js'
import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { BulkVerb } from '../api.js'
import { stateOf } from '../items/listed-item.js'
import { VERBS } from './verbs.js'

/** The backend has no item with that id. */
export class NoItemError extends MillraceError {
  constructor(verb: BulkVerb, id: string) {
    super(
      'NO_ITEM',
      `${verb}: the backend has no item "${id}". It was never enqueued here, or it ended so long ago that it was removed. Check the id and the prefix.`,
      { facts: { verb, id } },
    )
  }
}

/** How many of several ids an error names. */
export const NAMED_IDS = 5

/** A text that several ids begin with, where one was meant. */
export class AmbiguousIdError extends MillraceError {
  /** `ids` are more than one; of more than {@link NAMED_IDS}, the others are not named. */
  constructor(what: 'item' | 'writ' | 'rig' | 'action', prefix: string, ids: readonly string[]) {
    const named = ids.toSorted().slice(0, NAMED_IDS)
    const lines = [...named, ...(ids.length > named.length ? ['and more'] : [])].map((line) => `\n  ${line}`)
    super(
      'AMBIGUOUS_ID',
      `Several ${what}s have an id that begins with "${prefix}":${lines.join('')}\nType more of it.`,
      {
        facts: { prefix },
      },
    )
  }
}

/** The backend has too many items, and no index in the order of their ids. */
export class TooManyIdsError extends MillraceError {
  constructor(prefix: string) {
    super(
      'AMBIGUOUS_ID',
      `This backend has too many items to tell whether only one id begins with "${prefix}". Give the whole id.`,
      { facts: { prefix } },
    )
  }
}

/** The action does not apply to the state of the item. */
export class WrongStateError extends MillraceError {
  constructor(verb: BulkVerb, id: string, state: string, next: string) {
    super('WRONG_STATE', `${verb} applies to ${VERBS[verb].takes}, and "${id}" is ${state}. ${next}`, {
      facts: { verb, id, state },
    })
  }
}

/** A query names a state that the action does not apply to. */
export class WrongQueryError extends MillraceError {
  constructor(verb: BulkVerb, state: string) {
    const { states, onRequest, takes } = VERBS[verb]
    super(
      'WRONG_STATE',
      `${verb} applies to ${takes}: state "${state}" is not one of ${[...states, ...onRequest].join(', ')}. Leave \`state\` out for all of them.`,
      { facts: { verb, state } },
    )
  }
}

/** There is no bulk action with that id. */
export class NoActionError extends MillraceError {
  constructor(id: string) {
    super(
      'NO_ACTION',
      `There is no bulk action "${id}". Actions are kept for 30 days. Compare the id with the list of actions.`,
      { facts: { id } },
    )
  }
}

/** An item kept changing its state while the action was being applied. */
export class ContendedError extends MillraceError {
  constructor(verb: BulkVerb, id: string) {
    super('CONTENDED', `${id} changed its state at every attempt to ${verb} it. Try again.`, { facts: { verb, id } })
  }
}

/** Why the action does not apply to this item, and what to do instead. */
export function wrongState(verb: BulkVerb, view: ItemSummary, now: At): WrongStateError {
  const { id, type } = view.envelope
  const state = stateOf(view, now)
  return new WrongStateError(verb, id, state, nextStep())

  function nextStep(): string {
    switch (state) {
      case 'completed':
        return 'It has succeeded; enqueue it again to run it once more.'
      case 'dead':
      case 'cancelled':
        return verb === 'cancel' || verb === 'runNow' ? 'Redrive it to let it run again.' : ''
      case 'waiting':
        return verb === 'runNow' ? `It is ready already: explain("${id}") says what it waits for.` : 'Cancel it first.'
      case 'active':
        return verb === 'runNow' ? 'It is running.' : 'Cancel it first, and wait until it has ended.'
      case 'blocked':
        return view.hold?.by === 'pause'
          ? `It is held because ${view.hold.key} is paused: resume that (its queue, or type "${type}").`
          : 'Cancel it first.'
      case 'scheduled':
      case 'retrying':
        return 'Cancel it first.'
    }
  }
}
