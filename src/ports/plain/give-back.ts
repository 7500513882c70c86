import { nextTry, writeEnvelope } from '../envelope.js'
import type { Envelope } from '../item.js'
import type { Effect } from '../settlement.js'
import { type Desk, deliver, dueIn, keptFor } from './desk.js'
import type { Held } from './held.js'
import { lasting } from './held-state.js'
import { runOf, stateOf, writeState } from './state.js'

/**
 * The item runs again later: its new state, then the new message, then the ack of the old one. Should the process die after
 * the first step, the old message comes back, finds the newer state and pushes what it asks for.
 */
export async function retryLater(desk: Desk, held: Held, outcome: Extract<Effect, { do: 'retryAt' }>): Promise<void> {
  const { progress, envelope, queue, pulled } = held
  const { attempt, delayMs } = outcome
  const again = await progress.once('next', async () => nextTry(envelope, attempt, dueIn(desk, delayMs)))
  await progress.once('pending', () =>
    desk.store.set(
      desk.keys.state(envelope.id),
      writeState(stateOf(again, { status: 'pending', marks: lasting(held) })),
      keptFor(desk, delayMs),
    ),
  )
  held.decided = 'retryAt'
  await progress.once('push', () =>
    deliver(desk, queue, writeEnvelope(again), again, { delayMs, key: tryKey(again, held.lease.fence), wake: true }),
  )
  if (pulled !== undefined) await queue.ack(pulled)
  desk.leases.finish(held)
}

/**
 * Another key than the copy under lease has: that one still stands in the queue, and would swallow the next. The fence tells
 * them apart, and stands in the state too, so that a copy which is pushed once more after a crash has the same key.
 */
export const tryKey = (envelope: Pick<Envelope, 'id' | 'redrives'>, fence: number): string =>
  `${envelope.id}:${runOf(envelope)}:${fence}`

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
