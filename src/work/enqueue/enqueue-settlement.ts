import type { At } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import type { Effect, EffectOf, Settlement } from '../../ports/settlement.js'
import type { Child, OpenGate } from '../settle/outcome.js'

/** Turns an enqueue into what is to be written. The guard `absent` makes it harmless to repeat it after a lost reply. */
export function enqueueSettlement(item: Envelope, queue: string, now: At): Settlement {
  return settlement({ item, queue, delayMs: Math.max(0, item.startAt - now) })
}

/** The same for a gate: it is held until its condition is decided, and members that have ended already count immediately. */
export function enqueueGateSettlement({ item, queue, delayMs, hold }: Child, gate: OpenGate): Settlement {
  return settlement({ item, queue, delayMs, ...(hold === undefined ? {} : { hold }) }, gate)
}

/** The same for an item that skips the queue: it starts with a lease, so a crash does not lose it. */
export function enqueueHeldSettlement(
  item: Envelope,
  queue: string,
  leasedTo: NonNullable<EffectOf<'enqueue'>['leasedTo']>,
): Settlement {
  return settlement({ item, queue, delayMs: 0, leasedTo })
}

function settlement(enqueued: Omit<EffectOf<'enqueue'>, 'do'>, ...more: readonly Effect[]): Settlement {
  const { id, groupId } = enqueued.item
  const effects = [{ do: 'joinGroup', groupId, count: 1 } as const, { do: 'enqueue', ...enqueued } as const, ...more]
  return { guard: { by: 'absent', id }, effects }
}
