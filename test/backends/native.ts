import type { Claimed, Envelope } from '../../src/ports/item.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Effect, Settlement } from '../../src/ports/settlement.js'

/** Settlements by hand, for tests of one backend. Items are in groups beside them: `g-a` is that of `a`. */

export const DAY = 86_400_000

export function envelope(id: string, over: Partial<Envelope> = {}): Envelope {
  return { id, type: 't', groupId: `g-${id}`, input: 'null', queueAt: 0, startAt: 0, attempt: 1, priority: 0, ...over }
}

export function enqueue(
  item: Envelope,
  how: Partial<Extract<Effect, { do: 'push' }>> = {},
  more: readonly Effect[] = [],
): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'openGroup', groupId: item.groupId, by: 1 },
      { do: 'push', item, queue: 'default', delayMs: 0, ...how },
      ...more,
    ],
  }
}

export async function claim(ledger: Ledger, max = 100, queue = 'default'): Promise<readonly Claimed[]> {
  const reply = await ledger.claim({ from: [{ queue, max }], leaseMs: 30_000, worker: 'w1' })
  return reply.items
}

export function finish(
  { lease, envelope: item }: Claimed,
  result?: string,
  more: readonly Effect[] = [],
  keepMs = DAY,
): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      ...more,
      { do: 'finish', id: lease.id, ending: 'done', keepMs, ...(result === undefined ? {} : { result }) },
      { do: 'closeGroup', groupId: item.groupId, by: 1 },
    ],
  }
}

export function park({ lease, envelope: item }: Claimed, error = 'Error: boom', keepMs = DAY): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      { do: 'park', id: lease.id, ending: 'exhausted', class: 'retryable', error, keepMs },
      { do: 'closeGroup', groupId: item.groupId, by: 1 },
    ],
  }
}

/** The record of a run that went well. */
export const ran = ({ lease, envelope: { attempt } }: Claimed): Effect => ({
  do: 'recordAttempt',
  id: lease.id,
  was: { attempt, startedAt: 1, endedAt: 2, worker: 'w1' },
})

export const anybody = (...effects: readonly Effect[]): Settlement => ({ guard: { by: 'none' }, effects })

export const ids = (items: readonly Claimed[]) => items.map(({ lease }) => lease.id)
