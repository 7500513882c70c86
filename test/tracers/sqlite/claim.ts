import type { Claimed } from '../../../src/ports/item.js'
import type { ClaimAsk, ClaimReply } from '../../../src/ports/ledger.js'
import { fromColumns } from '../columns.js'
import type { ReadyRow, Statements } from './statements.js'

/** How many lapsed leases and due items one claim brings back: bounded, so that a claim after a long sleep is not slow. */
const STEP = 1_000

/** Leases what is ready, inside the caller's write transaction. */
export function claimReady(sql: Statements, ask: ClaimAsk, token: string, now: number): ClaimReply {
  const until = now + ask.leaseMs
  const items: Claimed[] = []
  sql.reclaim.run(now, STEP)
  for (const { queue, max } of ask.from) {
    sql.promote.run(queue, now, STEP)
    const rows = sql.ready.all(queue, max)
    // Those that start at once come first, and are recorded as started by the claim itself.
    const starting = Math.min(rows.length, Math.max(0, ask.startNow - items.length))
    if (starting > 0) sql.lease.run(token, until, ask.worker, now, queue, starting)
    if (starting < rows.length) sql.lease.run(token, until, ask.worker, null, queue, rows.length - starting)
    for (const [i, row] of rows.entries()) items.push(claimed(row, queue, token, until, i < starting))
  }
  const due = ask.from.map(({ queue }) => sql.nextDue.get(queue, now)).filter((at) => at != null)
  return {
    items,
    more: ask.from.some(({ queue }) => sql.anyReady.get(queue, queue, now) === 1),
    ...(due.length === 0 ? {} : { nextDueAt: Math.min(...due) }),
    at: now,
  }
}

/** The row was read before it was leased: the lease adds one to fence and deliveries. */
function claimed(row: ReadyRow, queue: string, token: string, until: number, started: boolean): Claimed {
  const [, id, type, groupId, priority, attempt, queueAt, startAt, input, rest, fence, lapses, crashes] = row
  const item = {
    lease: { id, queue, token, fence: fence + 1, until },
    envelope: fromColumns({ id, type, groupId, input, queueAt, startAt, attempt, priority, rest }),
    lapses,
    crashes,
    started,
    deliveries: row[13] + 1,
  }
  const met = row[14]
  return met === null ? item : { ...item, gate: { met: met === 1 } }
}
