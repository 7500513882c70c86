import { writeEndless } from '../../core/endless-json.js'
import type { At, Ms } from '../../core/time.js'
import { isWellFormed } from '../../core/well-formed.js'
import type { Lease } from '../../ports/item.js'
import type { LeaseWord, Worker } from '../../ports/ledger.js'
import type { Leases } from './leases.js'
import type { Statements } from './sql.js'

export interface Held {
  readonly lease: Lease
  readonly running: boolean
  readonly progress?: string
}

/** Heartbeats of many leases, with the record of the process that holds them. */
export function extendLeases(
  sql: Statements,
  held: readonly Held[],
  leaseMs: Ms,
  me: Worker,
  maxProgressBytes: number,
  now: At,
  leases: Leases,
): LeaseWord[] {
  const settings = me.settings === undefined ? null : writeEndless(me.settings)
  sql.putWorker.run(me.id, me.host, me.version, JSON.stringify(me.types), JSON.stringify(me.queues), settings, now)
  const until = leases.now(sql) + leaseMs
  return held.map(({ lease, running, progress }) => {
    const found = sql.heldRow.get(lease.id, lease.token)
    if (found === undefined) return 'lost'
    const [seq, cancelled] = found
    // The engine has checked the size and told its author; here it only must not pile up.
    const told =
      progress !== undefined && progress.length <= maxProgressBytes && isWellFormed(progress) ? progress : null
    sql.extendItem.run(until, Number(running), told, seq)
    return cancelled === null ? 'held' : 'cancelled'
  })
}
