import type { Ms } from '../../core/time.js'
import type { Lease } from '../../ports/item.js'
import type { Worker } from '../../ports/ledger.js'
import type { Book } from './book.js'
import { durationOf, type Time } from './time.js'

export interface Held {
  readonly lease: Lease
  readonly started: boolean
  readonly progress?: string
}

/** Heartbeats of many leases. Nothing of it is written to the file: leases end with the process anyway. */
export function extendLeases(
  book: Book,
  held: readonly Held[],
  leaseMs: Ms,
  me: Worker,
  maxProgressBytes: number,
  time: Time,
): ('held' | 'lost' | 'cancelled')[] {
  const now = time.wall()
  const steady = time.steady()
  book.workers.saw(me, now)
  return held.map(({ lease, started, progress }) => {
    const record = book.known(lease.id)
    const message = record?.message
    if (record === undefined || message?.lease?.token !== lease.token) return 'lost'
    record.queue.extend(message, durationOf(leaseMs), steady, now)
    if (started) {
      message.lease.started = true
      record.runAt ??= now
    }
    // The engine has checked the size and told its author; here it only must not pile up.
    if (progress !== undefined && progress.length <= maxProgressBytes) record.withExtras().progress = progress
    return record.extras?.cancelled === undefined ? 'held' : 'cancelled'
  })
}
