import type { At } from '../../core/time.js'
import type { Inspect, ItemSummary } from '../../ports/ledger.js'
import type { Leases } from './leases.js'
import type { Statements, ViewRow } from './sql.js'
import { summaryOf } from './view.js'

/** A page of what nothing will ever put to work. Their index holds nothing else, and nothing at all where all is sound. */
export function straysOf(
  sql: Statements,
  below: number,
  limit: number,
  now: At,
  leases: Leases,
): Awaited<ReturnType<NonNullable<Inspect['strays']>>> {
  const rows = sql.strays.all(below, limit + 1)
  const shown = rows.slice(0, limit)
  const leaseEnd = leases.reader(sql, now)
  const items = shown.flatMap((row): readonly ItemSummary[] => {
    const view = summaryOf(row.slice(0, -1) as unknown as ViewRow, now, leaseEnd)
    return view === undefined ? [] : [view]
  })
  const last = shown.at(-1)?.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: String(last) } : { items }
}
