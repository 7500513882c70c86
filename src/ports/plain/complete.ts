import type { CommitResult } from '../settlement.js'
import { type Desk, keptFor } from './desk.js'
import type { Held } from './held.js'
import { stateAfter } from './held-state.js'
import { outcomeEntries } from './outcome-entries.js'
import { hasEnded, writeState } from './state.js'
import { windUp } from './wind-up.js'

/**
 * A delivery of an item that has ended: whatever its last holder did not get to do is done, and the message acked. Most
 * often only the ack is missing.
 */
export async function completeEnded(desk: Desk, held: Held, isSettled: boolean): Promise<CommitResult> {
  const { state, envelope, queue, pulled } = held
  if (state === undefined || !hasEnded(state.status)) {
    // It has left its group, and nothing else is known of it: there is nothing to tell anybody.
    if (state !== undefined) await uncover(desk, held)
    if (pulled !== undefined) await queue.ack(pulled)
    desk.leases.finish(held)
    return { kind: 'applied', closed: [] }
  }
  const isDead = state.status === 'dead'
  const error = isDead ? ((await desk.store.get(desk.keys.error(state.id))) ?? state.error ?? '') : undefined
  return windUp(desk, held, {
    ok: !isDead,
    ...(error === undefined ? {} : { error }),
    // Once it has left its group it has been buried too: that comes first.
    isBuried: isDead && !isSettled && state.marks?.ending !== 'cancelled',
    closes: [{ groupId: envelope.groupId, by: 1 }],
    tells: [],
    notified: [],
  })
}

/** The state of an item that has ended was written over, by an enqueue that was repeated: it says again what came of it. */
async function uncover(desk: Desk, held: Held): Promise<void> {
  const { keys, store, clock } = desk
  const { id } = held.lease
  const [result, error] = await store.getAll([keys.result(id), keys.error(id)])
  const endAt = clock.now()
  const state =
    result === undefined && error !== undefined
      ? stateAfter(held, { status: 'dead', endAt, error })
      : stateAfter(held, {
          status: 'success',
          endAt,
          marks: { ending: 'done', ...(result === undefined ? { isResultless: true } : {}) },
        })
  await store.set(keys.state(id), writeState(state), keptFor(desk))
}

/** A delivery of an item that somebody cancelled: it ends here, without a run. */
export async function cancelPopped(desk: Desk, held: Held, reason: string): Promise<CommitResult> {
  // The mark of a cancel that ended the item itself says so already.
  const error = reason === '' || reason.startsWith('cancelled') ? reason || 'cancelled' : `cancelled: ${reason}`
  const park = { do: 'park', id: held.lease.id, ending: 'cancelled', class: 'unclassified', error } as const
  await desk.store.write(outcomeEntries(desk, held, { ...park, keepMs: desk.options.retentionMs }))
  return windUp(desk, held, {
    ok: false,
    error,
    isBuried: false,
    closes: [{ groupId: held.envelope.groupId, by: 1 }],
    tells: [],
    notified: [],
  })
}
