import { MillraceError } from '../../core/error.js'
import type { At } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import type { Verb } from '../api.js'
import { stateOf } from '../item-line.js'
import { VERBS } from './verbs.js'

/** There is no item of that id. */
export class NoItemError extends MillraceError {
  constructor(verb: Verb, id: string) {
    super(
      'NO_ITEM',
      `${verb}: the backend knows no item "${id}". It was never enqueued here, or it ended so long ago that it is no longer kept. Check the id and the prefix.`,
      { facts: { verb, id } },
    )
  }
}

/** The item, or what was asked for, is in a state that the action does not take. */
export class WrongStateError extends MillraceError {
  constructor(verb: Verb, id: string, state: string, next: string) {
    super('WRONG_STATE', `${verb} takes ${VERBS[verb].takes}, and "${id}" is ${state}. ${next}`, {
      facts: { verb, id, state },
    })
  }
}

/** A query names a state that the action can do nothing about. */
export class WrongQueryError extends MillraceError {
  constructor(verb: Verb, state: string) {
    const { states, onRequest, takes } = VERBS[verb]
    super(
      'WRONG_STATE',
      `${verb} takes ${takes}: state "${state}" is none of ${[...states, ...onRequest].join(', ')}. Leave \`state\` out to take all of them.`,
      { facts: { verb, state } },
    )
  }
}

/** There is no bulk action of that id. */
export class NoActionError extends MillraceError {
  constructor(id: string) {
    super(
      'NO_ACTION',
      `No bulk action "${id}" is on record. They are kept for 30 days. Compare the id with the list of actions.`,
      { facts: { id } },
    )
  }
}

/** An item changed its state every time that it was to be acted on. */
export class ContendedError extends MillraceError {
  constructor(verb: Verb, id: string) {
    super('CONTENDED', `${id} changed its state every time it came to ${verb} it. Try again.`, { facts: { verb, id } })
  }
}

/** Why the action has nothing to do about this item, and what a person can do instead. */
export function wrongState(verb: Verb, view: ItemSummary, now: At): WrongStateError {
  const { id, type } = view.envelope
  const state = stateOf(view, now)
  return new WrongStateError(verb, id, state, nextStep())

  function nextStep(): string {
    switch (state) {
      case 'completed':
        return 'It has succeeded; enqueue it anew if it is to run once more.'
      case 'dead':
      case 'cancelled':
        return verb === 'cancel' || verb === 'runNow' ? 'Redrive it to let it run again.' : ''
      case 'waiting':
        return verb === 'runNow' ? `It is ready already: explain("${id}") tells what it waits for.` : 'Cancel it first.'
      case 'active':
        return verb === 'runNow' ? 'It runs.' : 'Cancel it first, and wait until it has ended.'
      case 'blocked':
        return view.hold?.by === 'pause'
          ? `It stands aside because ${view.hold.key} is paused: resume that (its queue, or type "${type}").`
          : 'Cancel it first.'
      case 'scheduled':
      case 'retrying':
        return 'Cancel it first.'
    }
  }
}
