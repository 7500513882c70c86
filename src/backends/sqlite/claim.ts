import type { At } from '../../core/time.js'
import { readEnvelope } from '../../ports/envelope.js'
import type { Claimed, Envelope } from '../../ports/item.js'
import type { ClaimAsk, ClaimReply } from '../../ports/ledger.js'
import { withRest } from './columns.js'
import { GateBook } from './gate-book.js'
import { GroupBook } from './group-book.js'
import type { Pass } from './item-effects.js'
import { holdKey, type Paused, pausedNow } from './pauses.js'
import { pushAll } from './push.js'
import type { ReadyRow, Statements } from './sql.js'
import { ACTIVE, BLOCKED, HAS_TAGS, WAITING } from './states.js'
import { moveTags, promote } from './tags.js'
import type { Told } from './told.js'

/** How many lapsed leases and due items one claim brings back: bounded, so that a claim after a long sleep is not slow. */
const STEP = 1_000
/** So many items of paused types are set aside in one claim. */
const MAX_SET_ASIDE = 1_024

interface Round {
  readonly sql: Statements
  readonly ask: ClaimAsk
  /** The tokens of this claim begin with it; each ends with the number of its item. */
  readonly token: string
  readonly now: At
  readonly told: Told
  readonly paused: Paused
  readonly items: Claimed[]
  readonly unreadable: { readonly queue: string; readonly body: string }[]
  readonly crashed: string[]
}

/** Leases what is ready, inside the caller's write transaction. */
export function claimReady(sql: Statements, ask: ClaimAsk, token: string, now: At, told: Told): ClaimReply {
  const paused = pausedNow(sql, now, told)
  const round: Round = { sql, ask, token, now, told, paused, items: [], unreadable: [], crashed: [] }
  let more = false
  let nextDueAt: At | undefined
  for (const { queue, max } of ask.from) {
    adoptBodies(round, queue)
    reclaim(round, queue)
    promote(sql, queue, now, STEP)
    if (!paused.queues.has(queue)) {
      claimFrom(round, queue, max)
      more ||= sql.anyReady.get(queue, queue, now, queue)?.[0] === 1
    }
    const due = sql.nextDue.get(queue, now)?.[0]
    if (due != null && (nextDueAt === undefined || due < nextDueAt)) nextDueAt = due
  }
  return {
    items: round.items,
    more,
    ...(nextDueAt === undefined ? {} : { nextDueAt }),
    at: now,
    ...(round.unreadable.length === 0 ? {} : { unreadable: round.unreadable }),
    ...(round.crashed.length === 0 ? {} : { crashed: round.crashed }),
  }
}

/** Leases that have run out end; a run that had started has crashed. */
function reclaim({ sql, now, crashed }: Round, queue: string): void {
  const lapsed = sql.lapsed.all(queue, now, STEP)
  if (lapsed.length === 0) return
  for (const [, , type, hasStarted] of lapsed) if (hasStarted === 1) crashed.push(type)
  sql.reclaim.run(queue, now, STEP)
  moveTags(sql, lapsed, WAITING)
}

function claimFrom(round: Round, queue: string, max: number): void {
  const { sql, ask, token, now, items } = round
  if (!(max > 0)) return
  const rows = readyRows(round, queue, max)
  // Those that start at once come first, and are recorded as started by the claim itself.
  const starting = Math.min(rows.length, Math.max(0, ask.startNow - items.length))
  const until = now + ask.leaseMs
  if (starting > 0) sql.lease.run(token, until, ask.worker, now, queue, starting)
  if (starting < rows.length) sql.lease.run(token, until, ask.worker, null, queue, rows.length - starting)
  for (const [i, row] of rows.entries()) {
    items.push(claimed(row, queue, token, until, i < starting))
    if (row[16] & HAS_TAGS) sql.stateTags.run(ACTIVE, row[0])
  }
}

/** The first items of the queue, once those of paused types that stand before them have been set aside. */
function readyRows({ sql, paused }: Round, queue: string, max: number): ReadyRow[] {
  for (let aside = 0; ; ) {
    const rows = sql.ready.all(queue, max)
    if (paused.types.size === 0) return rows
    const held = rows.filter((row) => paused.types.has(row[2]))
    if (held.length === 0) return rows
    for (const row of held) {
      sql.setAside.run(holdKey('type', row[2]), row[0])
      if (row[16] & HAS_TAGS) sql.stateTags.run(BLOCKED, row[0])
    }
    aside += held.length
    if (aside >= MAX_SET_ASIDE) return []
  }
}

/** The row was read before it was leased: the lease adds one to fence and deliveries. */
function claimed(row: ReadyRow, queue: string, token: string, until: At, started: boolean): Claimed {
  const [seq, id, type, groupId, priority, attempt, queueAt, startAt, input, rest, waiter, fence, lapses, crashes] = row
  const named: Envelope = { id, type, groupId, input, queueAt, startAt, attempt, priority }
  const item = {
    lease: { id, queue, token: `${token}${seq}`, fence: fence + 1, until },
    envelope: waiter === null && rest === null ? named : withRest(named, waiter, rest),
    lapses,
    crashes,
    started,
    deliveries: row[14] + 1,
  }
  const [met, cancelled] = [row[15], row[17]]
  if (met === null && cancelled === null) return item
  return {
    ...item,
    ...(met === null ? {} : { gate: { met: met === 1 } }),
    ...(cancelled === null ? {} : { cancelled }),
  }
}

/** Bodies that came through the plain queue become items; what is no envelope is reported and removed. */
function adoptBodies({ sql, now, told, unreadable }: Round, queue: string): void {
  const bodies = sql.foreignBodies.all(queue, STEP)
  if (bodies.length === 0) return
  const pass: Pass = { sql, now, told, groups: new GroupBook(sql, now, told), gates: new GateBook(sql, now, told) }
  for (const [seq, body, dueAt] of bodies) {
    sql.deleteMessage.run(seq)
    const item = readEnvelope(body)
    if (item === undefined) unreadable.push({ queue, body })
    else if (sql.itemRow.get(item.id) === undefined)
      // Nobody has counted it into its group: whoever pushed it did that, or there is none.
      pushAll(pass, [{ do: 'push', item, queue, delayMs: Math.max(0, dueAt - now) }], new Map(), [])
  }
  pass.groups.close()
}
