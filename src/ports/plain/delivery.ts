import type { Ms } from '../../core/time.js'
import type { Claimed, Envelope } from '../item.js'
import { countCrash } from './crash.js'
import type { Desk } from './desk.js'
import { newLeaseToken } from './facts.js'
import { checkGate, type GateVerdict } from './gates.js'
import { type Held, held } from './held.js'
import type { Arrival } from './intake.js'
import type { Ruling } from './judge.js'
import type { StoredState } from './state.js'

/** A delivery that was understood: where it came from, and what it carries. */
export interface Delivery extends Arrival {
  readonly envelope: Envelope
  readonly worker: string
  readonly leaseMs: Ms
}

/** A lease of this delivery. The fence rises with every lease: by what is on record, and by time where nothing is. */
export function leaseOf(desk: Desk, delivery: Delivery, state: StoredState | undefined): Held {
  const { queue, pulled, heardMs, envelope, worker, leaseMs } = delivery
  const { clock } = desk
  const now = clock.now()
  const { fence = 0, crashes = 0 } = state?.marks ?? {}
  return held({
    lease: {
      id: envelope.id,
      queue: queue.name,
      token: newLeaseToken(desk),
      fence: Math.max(Math.floor(now), fence + 1),
      until: now + leaseMs - (clock.monotonic() - heardMs),
    },
    envelope,
    body: pulled.body,
    queue,
    pulled,
    worker,
    crashes,
    state,
    heardMs,
    leaseMs,
  })
}

/** Handed out, or why not: another delivery got there first, or the item's gate has not decided. */
type HandedOut = Claimed | { readonly not: 'busy' } | { readonly not: 'gate'; readonly state: StoredState }

export async function handOut(
  desk: Desk,
  delivery: Delivery,
  found: StoredState | undefined,
  ruling: Extract<Ruling, { kind: 'run' }>,
  crashed: (type: string) => void,
): Promise<HandedOut> {
  const { envelope, pulled } = delivery
  const hasCrashed = ruling.hasCrashed && found !== undefined
  const state = hasCrashed ? await countCrash(desk, envelope, found) : found
  if (hasCrashed) crashed(envelope.type)
  let gate: GateVerdict
  if (ruling.gate !== undefined && state !== undefined) {
    const checked = await checkGate(desk, ruling.gate, newLeaseToken(desk), true)
    gate = checked?.verdict
    const isDue = state.marks?.dueAt !== undefined && state.marks.dueAt <= desk.clock.now()
    if (checked !== undefined && gate === undefined && !isDue) return { not: 'gate', state }
  }
  // Nothing waits between this look and the entry: of two copies in one claim only the first gets through.
  if (desk.leases.holderOf(envelope.id, desk.clock.monotonic()) !== undefined) return { not: 'busy' }
  const one = leaseOf(desk, delivery, state)
  desk.leases.add(one)
  return {
    lease: one.lease,
    envelope,
    // Put-backs and lapses look the same to a plain queue: only lapses of runs that had started are known.
    lapses: one.crashes,
    crashes: one.crashes,
    deliveries: pulled.attempt,
    ...(gate === undefined ? {} : { gate }),
  }
}
