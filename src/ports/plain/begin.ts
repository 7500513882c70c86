import type { Lease } from '../item.js'
import { type Desk, keptFor } from './desk.js'
import type { Held } from './held.js'
import { stateAfter } from './held-state.js'
import { entry } from './plain-store.js'
import { writeState } from './state.js'

/**
 * Writes that these runs have begun, alongside them: the token that keeps other deliveries away, then the state. Whatever
 * is written about the item later waits for it. A failure is reported and is no failure of the run.
 */
export async function begin(desk: Desk, leases: readonly Lease[]): Promise<void> {
  const started = leases.flatMap((lease) => desk.leases.find(lease) ?? [])
  await Promise.all(started.map((held) => (held.begun ??= write(desk, held))))
}

async function write(desk: Desk, held: Held): Promise<void> {
  const { keys, store, clock } = desk
  const { lease, worker } = held
  held.runAt = clock.now()
  const state = stateAfter(held, { status: 'running', marks: { holder: worker } })
  try {
    await store.write([
      // No longer than the lease itself: what outlived it would keep the next holder waiting.
      entry(keys.run(lease.id), lease.token, remaining(desk, held)),
      entry(keys.state(lease.id), writeState(state), keptFor(desk)),
    ])
    held.isMarked = true
  } catch (error) {
    desk.report(error, 'commit')
  }
}

const remaining = ({ clock }: Desk, { heardMs, leaseMs }: Held): number =>
  Math.max(1, heardMs + leaseMs - clock.monotonic())
