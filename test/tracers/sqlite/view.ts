import type { At } from '../../../src/core/time.js'
import type { ItemView } from '../../../src/ports/ledger.js'
import { type StoredItem, viewFrom } from '../view.js'

const STATUS = ['pending', 'pending', 'running', 'success', 'dead'] as const

export function viewOf(row: Record<string, string | number | null>, now: At): ItemView {
  return viewFrom(
    {
      // The columns that are called the same in both.
      ...(row as unknown as StoredItem),
      status: STATUS[Number(row['state'])]!,
      groupId: row['group_id'] as string,
      queueAt: row['queue_at'] as number,
      startAt: row['start_at'] as number,
      dueAt: row['due_at'] as number | null,
      holdBy: row['hold_by'] as string | null,
      holdKey: row['hold_key'] as string | null,
      worker: row['worker'] as string | null,
      leaseUntil: row['lease_until'] as number | null,
      runAt: row['run_at'] as number | null,
      ending: row['ending'] as string | null,
      class: row['class'] as string | null,
      outcome: row['outcome'] as string | null,
      endAt: row['end_at'] as number | null,
    },
    now,
  )
}
