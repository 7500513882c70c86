import { MillraceError } from '../../core/error.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { isLocked } from '../../drivers/postgres/index.js'
import type { CommitResult, Guard } from '../../ports/settlement.js'
import { guardedId } from './guarded-id.js'

/** How long a settlement waits, in all, for what another transaction holds. */
const PATIENCE_MS: Ms = 2_000
const PAUSE = { baseMs: 25, maxMs: 200 }
/** A batch in which something other than a row is held is split into this many parts: each step costs a wait, so few steps are better than halves. */
const PARTS = 8

/** Another transaction holds a row, or writes the same id, and did not end in time. Nothing of the settlement happened. */
class LockedError extends MillraceError {
  constructor(id: string, cause: unknown) {
    super(
      'POSTGRES_LOCKED',
      `${id === '' ? 'A settlement' : `The item ${id}`} could not be written: an open transaction holds a row that it needs, or has enqueued the ` +
        'same id. End that transaction, or try again once it has ended.',
      { facts: { id }, cause },
    )
  }
}

/** What is sent, with the guard that says which item it is about. */
interface Guarded {
  readonly guard: Guard
}

export interface Sending<T extends Guarded, R> {
  readonly clock: Clock
  /** All of them, in one transaction. Rejects with 55P03, and does nothing, if it could not get a lock within a moment. */
  send(batch: readonly T[]): Promise<readonly R[]>
  /** For each of them, the rows that it needs and that another transaction holds at this moment. Waits for nothing. */
  heldRows(batch: readonly T[]): Promise<readonly (readonly string[])[]>
  /** Resolves when the row is free, or after a moment. Holds nothing meanwhile. */
  whenFree(id: string): Promise<void>
}

/**
 * A row that a transaction of the user holds must block only what needs it. A commit that waits for a row inside its transaction holds the
 * rows that it has locked so far, and heartbeats skip locked rows: after a wait of seconds the neighbours would have lost their
 * leases, and run again elsewhere. So a commit waits inside for a moment only, which is enough for other commits. Then it asks
 * which rows are held, and goes on with what needs none of them; what does waits outside, with no lock. It waits in the queue for the
 * row, so that it comes before a claim where the lease has ended meanwhile.
 */
export async function sendPastLocks<T extends Guarded, R>(
  batch: readonly T[],
  { clock, send, heldRows, whenFree }: Sending<T, R>,
): Promise<readonly (R | CommitResult)[]> {
  if (batch.length === 0) return []
  const giveUpAt = clock.monotonic() + PATIENCE_MS
  let cause: unknown
  try {
    // Hardly ever is anything held.
    return await send(batch)
  } catch (error) {
    if (!isLocked(error)) throw error
    cause = error
  }
  const results = new Map<number, R>()

  const sendSome = async (places: readonly number[]): Promise<void> => {
    if (places.length === 0) return
    try {
      const answers = await send(places.map((place) => batch[place]!))
      for (const [i, place] of places.entries()) results.set(place, answers[i]!)
    } catch (error) {
      if (!isLocked(error)) throw error
      cause = error
    }
  }
  /** What is held is no row of an item, but a group, say, or an id that a user has enqueued: no query shows those. */
  const sendInParts = async (places: readonly number[]): Promise<void> => {
    await sendSome(places)
    if (places.length < 2 || results.has(places[0]!)) return
    const size = Math.ceil(places.length / PARTS)
    for (let from = 0; from < places.length; from += size) await sendInParts(places.slice(from, from + size))
  }

  let left: readonly number[] = batch.map((_, place) => place)
  for (let rounds = 0; ; rounds += 1) {
    left = left.filter((place) => !results.has(place))
    if (left.length === 0) break
    const held = await heldRows(left.map((place) => batch[place]!))
    await sendInParts(left.filter((_, i) => held[i]!.length === 0))
    if (left.every((place) => results.has(place)) || clock.monotonic() >= giveUpAt) break
    const first = held.flat()[0]
    await (first === undefined ? clock.sleep(doublingDelay(rounds, PAUSE)) : whenFree(first))
  }
  return batch.map(({ guard }, place) =>
    results.has(place)
      ? (results.get(place) as R)
      : { kind: 'failed', error: new LockedError(guardedId(guard), cause) },
  )
}
