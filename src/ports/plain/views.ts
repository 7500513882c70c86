import { unreachable } from '../../core/unreachable.js'
import type { ItemView } from '../ledger.js'
import type { Desk } from './desk.js'
import { envelopeOf, readState, runOfState, type StoredState } from './state.js'

/**
 * An item as waiters see it. First its state alone, which is all there is to read while it waits; then what belongs to that
 * state. A success shows once its result is there, because the result is what makes it final.
 */
export async function readView(desk: Desk, id: string): Promise<ItemView | undefined> {
  const { keys, store } = desk
  // The marker of the end costs nothing more where many keys are one call, and is left out where each key is a call.
  const [text, settled] = await store.getAll([keys.state(id), ...(store.readsInBulk ? [keys.settled(id, 0)] : [])])
  const state = readState(text)
  if (state === undefined) return withoutState(desk, id)
  const view = viewOf(state)
  switch (state.status) {
    case 'pending':
      if (state.marks?.fence === undefined && settled === undefined) return isStillHeld(desk, state, view)
      return (await overtaken(desk, state, view)) ?? isStillHeld(desk, state, view)
    case 'running': {
      const [[progress, cancelled], ended] = await Promise.all([
        store.getAll([keys.progress(id), keys.cancel(id)]),
        overtaken(desk, state, view),
      ])
      if (ended !== undefined) return ended
      const said = progress === undefined ? view : { ...view, progress }
      return cancelled === undefined ? said : { ...said, cancelled }
    }
    case 'success': {
      if (state.marks?.isResultless === true) return view
      const result = await store.get(keys.result(id))
      if (result !== undefined) return { ...view, result }
      const { ending: _, endAt: __, ...open } = view
      return { ...open, status: 'running' }
    }
    case 'dead': {
      const error = (await store.get(keys.error(id))) ?? state.error
      return { ...view, ...(error === undefined ? {} : { error }) }
    }
    default:
      return unreachable(state.status)
  }
}

/**
 * An item that has left its group has ended, whatever its state says: a process that had lost its lease may have written that
 * afterwards, and nobody fences a plain store.
 */
async function overtaken(desk: Desk, state: StoredState, view: ItemView): Promise<ItemView | undefined> {
  const { keys, store } = desk
  const { id } = state
  const [settled, result, error] = await store.getAll([
    keys.settled(id, runOfState(state)),
    keys.result(id),
    keys.error(id),
  ])
  if (settled === undefined) return undefined
  const { holder: _, dueAt: __, ...rest } = view
  if (result === undefined && error !== undefined) return { ...rest, status: 'dead', error }
  return { ...rest, status: 'success', ending: 'done', ...(result === undefined ? {} : { result }) }
}

function viewOf(state: StoredState): ItemView {
  const { status, runAt, endAt, startAt, marks = {} } = state
  const { queue, ending, class: failureClass, holder, crashes, gate, dueAt } = marks
  const isPending = status === 'pending'
  return {
    envelope: envelopeOf(state),
    status,
    ...(queue === undefined ? {} : { queue }),
    ...(ending === undefined ? {} : { ending }),
    ...(failureClass === undefined ? {} : { class: failureClass }),
    ...(isPending && gate !== undefined ? { hold: { by: 'gate', key: gate } } : {}),
    ...(isPending ? dueOf(gate === undefined ? startAt : dueAt) : {}),
    ...(status === 'running' && holder !== undefined ? { holder } : {}),
    ...(runAt === undefined ? {} : { runAt }),
    ...(endAt === undefined ? {} : { endAt }),
    ...(crashes === undefined ? {} : { crashes }),
  }
}

const dueOf = (dueAt: number | undefined) => (dueAt === undefined ? {} : { dueAt })

/** A gate that has decided holds nobody, though the item's state does not know yet. */
async function isStillHeld(desk: Desk, state: StoredState, view: ItemView): Promise<ItemView> {
  const gate = state.marks?.gate
  if (gate === undefined || (await desk.store.get(desk.keys.gateFreed(gate))) === undefined) return view
  const { hold: _, ...free } = view
  return { ...free, dueAt: state.startAt }
}

/** The state may have expired, or be corrupt, before the outcome: whoever waits for it still gets it. */
async function withoutState(desk: Desk, id: string): Promise<ItemView | undefined> {
  const { keys, store } = desk
  const [result, error] = await store.getAll([keys.result(id), keys.error(id)])
  const envelope = { id, type: '', groupId: '', queueAt: 0, startAt: 0, attempt: 1, priority: 0 }
  if (result !== undefined) return { envelope, status: 'success', ending: 'done', result }
  return error === undefined ? undefined : { envelope, status: 'dead', error }
}
