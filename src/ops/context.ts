import { type Clock, systemClock } from '../core/time/clock.js'
import type { At } from '../core/time/time.js'
import { findLedger, type OverPlainPorts } from '../ports/find-ledger.js'
import { type Inspect, type ItemSummary, summariesOf } from '../ports/inspect.js'
import type { Ledger } from '../ports/ledger.js'
import type { Ports } from '../ports/ports.js'
import { NotSupportedError } from '../work/control/pause.js'

/** What every part of ops works with: one backend, opened by a process that runs no work. */
export interface OpsContext {
  readonly ports: Ports
  readonly prefix: string
  readonly ledger: Ledger
  readonly clock: Clock
  /** The backend's own time. */
  now(): Promise<At>
  /** Items without their payloads. */
  summaries(ids: readonly string[]): Promise<readonly (ItemSummary | undefined)[]>
  /** The listing part of the backend; throws `NOT_SUPPORTED` in the name of `call` if there is none. */
  inspect(call: string): Inspect
}

export function openOpsContext(
  overPlainPorts: OverPlainPorts,
  ports: Ports,
  { prefix = 'work:', clock = systemClock }: { prefix?: string; clock?: Clock },
): OpsContext {
  const { ledger } = findLedger(ports, [], { prefix }, (plain, perType) =>
    overPlainPorts(plain, perType, { prefix, clock, putBackMs: 1_000 }),
  )
  return {
    ports,
    prefix,
    ledger,
    clock,
    // A claim from no queue returns the time.
    now: async () => (await ledger.claim({ queues: [], leaseMs: 1_000, worker: 'ops' })).now,
    summaries: (ids) => summariesOf(ledger, ids),
    inspect(call) {
      if (ledger.inspect === undefined) throw new NotSupportedError(`answer ops.${call}()`, 'inspect')
      return ledger.inspect
    },
  }
}
