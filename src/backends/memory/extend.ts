import type { Ms } from '../../core/time.js'
import type { Lease } from '../../ports/item.js'
import type { LeaseWord, Worker } from '../../ports/ledger.js'
import type { Book } from './book.js'
import { durationOf, type Time } from './time.js'

export interface Held {
  readonly lease: Lease
  readonly running: boolean
  readonly progress?: string
}

/** Heartbeats of many leases. All that the file needs of it is what runs: leases end with the process, and what ran then crashed. */
export function extendLeases(
  book: Book,
  held: readonly Held[],
  leaseMs: Ms,
  me: Worker,
  maxProgressBytes: number,
  time: Time,
): LeaseWord[] {
  const now = time.wall()
  const steady = time.steady()
  book.workers.saw(me, now)
  const words = held.map(({ lease, running, progress }): LeaseWord => {
    const record = book.known(lease.id)
    const message = record?.message
    if (record === undefined || message?.lease?.token !== lease.token) return 'lost'
    record.queue.extend(message, durationOf(leaseMs), steady, now)
    record.queue.setRunning(message, running)
    // The engine has checked the size and told its author; here it only must not pile up.
    if (progress !== undefined && progress.length <= maxProgressBytes) {
      record.withExtras().progress = progress
      book.weigh(record)
    }
    return record.extras?.cancelled === undefined ? 'held' : 'cancelled'
  })
  book.shelf.settled()
  return words
}
