import type { AuditReport } from '../api.js'

/** What an audit passed over, and how much of it. */
export type Unseen = AuditReport['unseen'][number]

/** A line of the report, where there is anything to tell. */
export function counted(code: Unseen['code'], count: number, text: (count: number) => string): readonly Unseen[] {
  return count === 0 ? [] : [{ code, count, text: text(count) }]
}
