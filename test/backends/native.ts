import type { ClaimedItem, Envelope } from '../../src/ports/item.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Effect, Settlement } from '../../src/ports/settlement.js'

/** Settlements by hand, for tests of one backend. Items are in groups beside them: `g-a` is that of `a`. */

export const DAY = 86_400_000

export function envelope(id: string, over: Partial<Envelope> = {}): Envelope {
  return { id, type: 't', groupId: `g-${id}`, input: 'null', queueAt: 0, startAt: 0, attempt: 1, priority: 0, ...over }
}

export function enqueue(
  item: Envelope,
  how: Partial<Extract<Effect, { do: 'enqueue' }>> = {},
  more: readonly Effect[] = [],
): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'joinGroup', groupId: item.groupId, count: 1 },
      { do: 'enqueue', item, queue: 'default', delayMs: 0, ...how },
      ...more,
    ],
  }
}

export async function claim(ledger: Ledger, max = 100, queue = 'default'): Promise<readonly ClaimedItem[]> {
  const reply = await ledger.claim({ queues: [{ queue, max }], leaseMs: 30_000, worker: 'w1' })
  return reply.items
}

export function finish(
  { lease, envelope: item }: ClaimedItem,
  result?: string,
  more: readonly Effect[] = [],
  keepMs = DAY,
): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      ...more,
      { do: 'complete', id: lease.id, ending: 'completed', keepMs, ...(result === undefined ? {} : { result }) },
      { do: 'leaveGroup', groupId: item.groupId, count: 1 },
    ],
  }
}

export function deadLetter({ lease, envelope: item }: ClaimedItem, error = 'Error: boom', keepMs = DAY): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      { do: 'deadLetter', id: lease.id, ending: 'exhausted', class: 'retryable', error, keepMs },
      { do: 'leaveGroup', groupId: item.groupId, count: 1 },
    ],
  }
}

/** The record of a run that went well. */
export const ran = ({ lease, envelope: { attempt } }: ClaimedItem): Effect => ({
  do: 'recordAttempt',
  id: lease.id,
  was: { attempt, startedAt: 1, endedAt: 2, worker: 'w1' },
})

export const anybody = (...effects: readonly Effect[]): Settlement => ({ guard: { by: 'none' }, effects })

export const ids = (items: readonly ClaimedItem[]) => items.map(({ lease }) => lease.id)
