import type { Claimed, Envelope } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { ownedBy } from '../../../src/ports/native.js'
import type { Backend } from '../../../src/ports/ports.js'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'

const DAY = 86_400_000

export function ledgerOn(backend: Backend): Ledger {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error(`no native ledger: the ${owned.foreign} is foreign`)
  return owned.open({ prefix: 'work:' })
}

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
  return (await ledger.claim({ from: [{ queue, max }], leaseMs: 30_000, worker: 'w1', startNow: max })).items
}

export function finish({ lease, envelope: item }: Claimed, result = '1', keepMs = DAY): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      {
        do: 'recordAttempt',
        id: lease.id,
        was: { attempt: item.attempt, startedAt: 1, endedAt: 2, worker: 'w1' },
      },
      { do: 'finish', id: lease.id, ending: 'done', keepMs, result },
      { do: 'closeGroup', groupId: item.groupId, by: 1 },
    ],
  }
}

export function park({ lease, envelope: item }: Claimed, keepMs = DAY): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      { do: 'park', id: lease.id, ending: 'exhausted', class: 'retryable', error: 'Error: boom', keepMs },
      { do: 'closeGroup', groupId: item.groupId, by: 1 },
    ],
  }
}

export const anybody = (...effects: readonly Effect[]): Settlement => ({ guard: { by: 'none' }, effects })
