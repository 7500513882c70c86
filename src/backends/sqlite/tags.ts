import type { At } from '../../core/time/time.js'
import type { Statements } from './sql.js'
import { HAS_TAGS, WAITING } from './states.js'

/** The tags of these items follow them into their new state. */
export function moveTags(
  sql: Statements,
  rows: readonly (readonly [seq: number, flags: number, ...unknown[]])[],
  state: number,
): void {
  for (const [seq, flags] of rows) if (flags & HAS_TAGS) sql.stateTags.run(state, seq)
}

/** What has fallen due in a queue becomes ready, so much of it at most. */
export function promote(sql: Statements, queue: string, now: At, limit: number): void {
  const due = sql.due.all(queue, now, limit)
  if (due.length === 0) return
  sql.promote.run(queue, now, limit)
  moveTags(sql, due, WAITING)
}
