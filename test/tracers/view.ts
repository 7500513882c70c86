import type { FailureClass } from '../../src/core/failure.js'
import type { At } from '../../src/core/time.js'
import type { Ending, Hold, Status } from '../../src/ports/item.js'
import type { ItemView } from '../../src/ports/ledger.js'
import { type EnvelopeColumns, fromColumns } from './columns.js'

/** A stored item, whatever store it came from; null where there is nothing. */
export interface StoredItem extends EnvelopeColumns {
  readonly queue: string
  readonly status: Status
  readonly dueAt: number | null
  readonly holdBy: string | null
  readonly holdKey: string | null
  readonly worker: string | null
  readonly leaseUntil: number | null
  readonly runAt: number | null
  readonly ending: string | null
  readonly class: string | null
  readonly outcome: string | null
  readonly endAt: number | null
  readonly lapses: number
  readonly crashes: number
}

/** The item as people and waiters see it. */
export function viewFrom(row: StoredItem, now: At): ItemView {
  const { input: _, ...envelope } = fromColumns(row)
  const isPending = row.status === 'pending'
  // A hold ends with its time.
  const isHeld = isPending && row.holdBy !== null && (row.dueAt === null || row.dueAt > now)
  return {
    envelope,
    queue: row.queue,
    status: row.status,
    ...(row.ending === null ? {} : { ending: row.ending as Ending }),
    ...(row.class === null ? {} : { class: row.class as FailureClass }),
    ...(isHeld ? { hold: { by: row.holdBy, key: row.holdKey ?? '' } as Hold } : {}),
    ...(isPending && row.dueAt !== null ? { dueAt: row.dueAt } : {}),
    ...(row.worker === null ? {} : { holder: row.worker }),
    ...(row.leaseUntil === null ? {} : { leaseUntil: row.leaseUntil }),
    ...(row.runAt === null ? {} : { runAt: row.runAt }),
    ...(row.status === 'success' && row.outcome !== null ? { result: row.outcome } : {}),
    ...(row.status === 'dead' && row.outcome !== null ? { error: row.outcome } : {}),
    ...(row.endAt === null ? {} : { endAt: row.endAt }),
    lapses: row.lapses,
    crashes: row.crashes,
  }
}
