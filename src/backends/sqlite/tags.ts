import type { At } from '../../core/time/time.js'
import { WAITING } from '../shared/state-codes.js'
import { HAS_TAGS } from './item-flags.js'
import { makeReady } from './places.js'
import type { Statements } from './sql.js'

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
  makeReady(
    sql,
    due.map(([seq]) => seq),
  )
  moveTags(sql, due, WAITING)
}
