import type { At } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import type { Settlement } from '../../ports/settlement.js'
import type { Child, OpenGate } from '../settle/outcome.js'

/** Turns an enqueue into what is to be written. The guard `absent` makes it harmless to repeat it after a lost reply. */
export function enqueueSettlement(item: Envelope, queue: string, now: At): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'joinGroup', groupId: item.groupId, count: 1 },
      { do: 'enqueue', item, queue, delayMs: Math.max(0, item.startAt - now) },
    ],
  }
}

/** The same for a gate: it is held until its condition is decided, and members that have ended already count immediately. */
export function enqueueGateSettlement({ item, queue, delayMs, hold }: Child, gate: OpenGate): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'joinGroup', groupId: item.groupId, count: 1 },
      { do: 'enqueue', item, queue, delayMs, ...(hold === undefined ? {} : { hold }) },
      gate,
    ],
  }
}

/** The same for an item that skips the queue: it starts with a lease, so a crash does not lose it. */
export function enqueueHeldSettlement(
  item: Envelope,
  queue: string,
  leasedTo: { readonly worker: string; readonly token: string; readonly leaseMs: number },
): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'joinGroup', groupId: item.groupId, count: 1 },
      { do: 'enqueue', item, queue, delayMs: 0, leasedTo },
    ],
  }
}
