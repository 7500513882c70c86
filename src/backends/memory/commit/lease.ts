import type { Ms } from '../../../core/time/time.js'
import type { Lease } from '../../../ports/item.js'
import type { LeaseStatus, WorkerRecord } from '../../../ports/ledger.js'
import type { ItemTable } from '../items/item-table.js'
import { durationOf, type Time } from '../time.js'

export interface Held {
  readonly lease: Lease
  readonly running: boolean
  readonly progress?: string
}

/** Heartbeats of many leases. The file only needs to know what runs: leases end with the process, and what ran then crashed. */
export function extendLeases(
  table: ItemTable,
  held: readonly Held[],
  leaseMs: Ms,
  me: WorkerRecord,
  maxProgressBytes: number,
  time: Time,
): LeaseStatus[] {
  const now = time.wall()
  const steady = time.steady()
  table.workers.saw(me, now)
  const words = held.map(({ lease, running, progress }): LeaseStatus => {
    const record = table.known(lease.id)
    const message = record?.message
    if (record === undefined || message?.lease?.token !== lease.token) return 'lost'
    record.queue.extend(message, durationOf(leaseMs), steady, now)
    record.queue.setRunning(message, running)
    // The engine has checked the size and reported it; here it only must not pile up.
    if (progress !== undefined && progress.length <= maxProgressBytes) {
      record.withExtras().progress = progress
      table.weigh(record)
    }
    return record.extras?.cancelled === undefined ? 'held' : 'cancelled'
  })
  table.context.settled()
  return words
}
