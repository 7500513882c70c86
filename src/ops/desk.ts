import { type Clock, systemClock } from '../core/clock.js'
import type { At } from '../core/time.js'
import type { Inspect, ItemSummary, Ledger } from '../ports/ledger.js'
import { ledgerOf } from '../ports/native.js'
import { overPlainPorts } from '../ports/plain/index.js'
import type { Ports } from '../ports/ports.js'
import { summariesOf } from '../ports/summaries.js'
import { NotSupportedError } from '../work/controls/pausing.js'

/** What every part of ops works with: one backend, seen by somebody who runs nothing. */
export interface Desk {
  readonly ports: Ports
  readonly prefix: string
  readonly ledger: Ledger
  readonly clock: Clock
  /** The backend's own time. */
  now(): Promise<At>
  /** How items stand, without their payloads. */
  summaries(ids: readonly string[]): Promise<readonly (ItemSummary | undefined)[]>
  /** What only a backend that can list has; throws `NOT_SUPPORTED` in the name of `call`. */
  inspect(call: string): Inspect
}

export function openDesk(
  ports: Ports,
  { prefix = 'work:', clock = systemClock }: { prefix?: string; clock?: Clock },
): Desk {
  const { ledger } = ledgerOf(ports, [], { prefix }, (plain, perType) =>
    overPlainPorts(plain, perType, { prefix, clock, putBackMs: 1_000 }),
  )
  return {
    ports,
    prefix,
    ledger,
    clock,
    // A claim that wants nothing tells it.
    now: async () => (await ledger.claim({ from: [], leaseMs: 1_000, worker: 'ops' })).at,
    summaries: (ids) => summariesOf(ledger, ids),
    inspect(call) {
      if (ledger.inspect === undefined) throw new NotSupportedError(`answer ops.${call}()`, 'inspect')
      return ledger.inspect
    },
  }
}
