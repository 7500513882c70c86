import type { Envelope } from '../item.js'
import { type Desk, keptFor } from './desk.js'
import { type StoredState, stateOf, writeState } from './state.js'

/**
 * A run of this try had started, and neither ended nor lives: that is a crash. The state goes back to `pending` with the new
 * count, so that a put-back before the next start is not taken for another crash.
 */
export async function countCrash(desk: Desk, envelope: Envelope, before: StoredState): Promise<StoredState> {
  const { keys, store, counters } = desk
  const { holder: _, ...marks } = before.marks ?? {}
  const state = stateOf(envelope, { status: 'pending', marks: { ...marks, crashes: (before.marks?.crashes ?? 0) + 1 } })
  // The counter is for people and tools; the count that decides travels with the state.
  await counters
    .increment(keys.crash(envelope.id), 1, keptFor(desk))
    .catch((error: unknown) => desk.report(error, 'queue'))
  await store.set(keys.state(envelope.id), writeState(state), keptFor(desk))
  return state
}
