import type { At } from '../core/time.js'
import type { Envelope } from '../ports/item.js'
import type { Settlement } from '../ports/settlement.js'
import type { Child, OpenGate } from './outcome.js'

/** Turns an enqueue into what is to be written. Behind `absent`, so that repeating it after a lost reply is harmless. */
export function submit(item: Envelope, queue: string, now: At): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'openGroup', groupId: item.groupId, by: 1 },
      { do: 'push', item, queue, delayMs: Math.max(0, item.startAt - now) },
    ],
  }
}

/** The same for a gate: it is held until what it waits for has decided, and whoever has ended already counts at once. */
export function submitGate({ item, queue, delayMs, hold }: Child, gate: OpenGate): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'openGroup', groupId: item.groupId, by: 1 },
      { do: 'push', item, queue, delayMs, ...(hold === undefined ? {} : { hold }) },
      gate,
    ],
  }
}

/** The same for an item that its own process runs at once: it is born under a lease, so that a crash does not lose it. */
export function submitHeld(
  item: Envelope,
  queue: string,
  heldBy: { readonly worker: string; readonly token: string; readonly leaseMs: number },
): Settlement {
  return {
    guard: { by: 'absent', id: item.id },
    effects: [
      { do: 'openGroup', groupId: item.groupId, by: 1 },
      { do: 'push', item, queue, delayMs: 0, heldBy },
    ],
  }
}
