import { nextTry, writeEnvelope } from '../envelope.js'
import type { Effect } from '../settlement.js'
import { type Desk, deliver, dueIn, keptFor } from './desk.js'
import type { Held } from './held.js'
import { lasting } from './held-state.js'
import { stateOf, writeState } from './state.js'

/**
 * The item runs again later: its new state, then the new message, then the ack of the old one. Should the process die after
 * the first step, the old message comes back, finds the newer state and pushes what it asks for.
 */
export async function retryLater(desk: Desk, held: Held, outcome: Extract<Effect, { do: 'retryAt' }>): Promise<void> {
  const { progress, envelope, queue, pulled } = held
  const { attempt, delayMs } = outcome
  const { again, copy } = await progress.once('next', async () => ({
    again: nextTry(envelope, attempt, dueIn(desk, delayMs)),
    // Not the key of the copy under lease: that one still stands in the queue, and would swallow the next. It is kept with
    // the state, so that whoever pushes this try once more after a crash does it under the same key.
    copy: `${envelope.id}:${desk.options.newToken()}`,
  }))
  await progress.once('pending', () =>
    desk.store.set(
      desk.keys.state(envelope.id),
      writeState(stateOf(again, { status: 'pending', marks: { ...lasting(held), copy } })),
      keptFor(desk, delayMs),
    ),
  )
  held.decided = 'retryAt'
  await progress.once('push', () =>
    deliver(desk, queue, writeEnvelope(again), again, { delayMs, key: copy, wake: true }),
  )
  if (pulled !== undefined) await queue.ack(pulled)
  desk.leases.finish(held)
}

/** Put back: no attempt is spent. */
export async function putBack(desk: Desk, held: Held, outcome: Extract<Effect, { do: 'release' }>): Promise<void> {
  const { envelope, pulled, queue, body } = held
  // The store says `running`: left like that, the next delivery would be taken for one after a crash. But an outcome that
  // is on record stays: whoever gets the item next completes it.
  if (held.begun !== undefined && held.decided === undefined)
    await desk.store.set(
      desk.keys.state(envelope.id),
      writeState(stateOf(envelope, { status: 'pending', marks: lasting(held) })),
      keptFor(desk, outcome.delayMs),
    )
  if (pulled !== undefined) await queue.fail(pulled, outcome.delayMs)
  else await deliver(desk, queue, body, envelope, { delayMs: outcome.delayMs ?? 0, key: envelope.id, wake: true })
  desk.leases.finish(held)
}
