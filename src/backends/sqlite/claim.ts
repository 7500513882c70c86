import type { At, Ms } from '../../core/time/time.js'
import { readEnvelope } from '../../ports/envelope.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { ClaimReply, ClaimRequest } from '../../ports/ledger.js'
import { NOT_AN_ENVELOPE } from '../../ports/pushed-natively.js'
import { expiredShare } from '../shared/expired-share.js'
import type { Notifications } from '../shared/notifications.js'
import { RoomsLeft, typesWithRoom } from '../shared/rooms-left.js'
import { ACTIVE, BLOCKED, WAITING } from '../shared/state-codes.js'
import { withRest } from './columns.js'
import { enqueueAll } from './enqueue.js'
import { GateTable } from './gate-table.js'
import { GroupTable } from './group-table.js'
import type { CommitContext } from './item-effects.js'
import { HAS_TAGS } from './item-flags.js'
import type { Leases } from './lease.js'
import { holdKey, type Paused, pausedNow } from './pauses.js'
import type { ReadyRow, Statements } from './sql.js'
import { moveTags, promote } from './tags.js'

/** How many lapsed leases and due items one claim brings back: bounded, so that a claim after a long sleep is not slow. */
const STEP = 1_000
/** One claim holds at most this many items of paused types. */
const MAX_HELD = 1_024

interface Round {
  readonly sql: Statements
  readonly ask: ClaimRequest
  /** The tokens of this claim begin with it; each ends with the number of its item. */
  readonly token: string
  readonly now: At
  readonly leases: Leases
  /** The time of leases. */
  readonly leaseNow: Ms
  readonly rooms: RoomsLeft
  readonly notifications: Notifications
  readonly paused: Paused
  readonly items: ClaimedItem[]
  readonly unreadable: { readonly queue: string; readonly body: string }[]
  readonly crashed: string[]
}

/** Leases what is ready, inside the caller's write transaction. */
export function claimReady(
  sql: Statements,
  ask: ClaimRequest,
  token: string,
  now: At,
  leases: Leases,
  notifications: Notifications,
): ClaimReply {
  const paused = pausedNow(sql, now, notifications)
  const rooms = new RoomsLeft(ask.rooms)
  const leaseNow = leases.now(sql)
  const found = { items: [], unreadable: [], crashed: [] }
  const round: Round = { sql, ask, token, now, leases, leaseNow, rooms, notifications, paused, ...found }
  let more = false
  let nextDueAt: At | undefined
  for (const { queue, max } of ask.queues) {
    adoptBodies(round, queue)
    reclaim(round, queue)
    promote(sql, queue, now, STEP)
    if (!paused.queues.has(queue)) {
      claimFrom(round, queue, max)
      more ||= max > 0 && hasMore(round, queue)
    }
    const due = sql.nextDue.get(queue, now)?.[0]
    if (due != null && (nextDueAt === undefined || due < nextDueAt)) nextDueAt = due
  }
  return {
    items: round.items,
    more,
    ...(nextDueAt === undefined ? {} : { nextDueAt }),
    now: now,
    ...(round.unreadable.length === 0 ? {} : { unreadable: round.unreadable }),
    ...(round.crashed.length === 0 ? {} : { crashed: round.crashed }),
  }
}

/** Leases that have run out end; what its last heartbeat said to be running has crashed. */
function reclaim({ sql, leaseNow, crashed }: Round, queue: string): void {
  const lapsed = sql.lapsed.all(queue, leaseNow, STEP)
  if (lapsed.length === 0) return
  for (const [, , type, wasRunning] of lapsed) if (wasRunning === 1) crashed.push(type)
  sql.reclaim.run(queue, leaseNow, STEP)
  moveTags(sql, lapsed, WAITING)
}

/** The same claim would find work again. Of what has only fallen due, or came as a body, the type is not asked: a claim sees to that. */
function hasMore({ sql, now, ask }: Round, queue: string): boolean {
  const types = typesWithRoom(ask.rooms)
  if (types !== undefined && sql.anyExpired.get(queue, now)?.[0] === 1) return true
  if (types?.size === 0) return false
  const head = types && sql.headType.get(queue)?.[0]
  // Without rooms, and where nothing waits, the types make no difference.
  if (types === undefined || head === undefined) return sql.anyReady.get(queue, queue, now, queue)?.[0] === 1
  return types.has(head) || sql.anyReadyOf.get(queue, listOf(types), queue, now, queue)?.[0] === 1
}

/** A set of types as a statement takes it. */
const listOf = (types: ReadonlySet<string>): string => JSON.stringify([...types])

function claimFrom(round: Round, queue: string, max: number): void {
  const { rooms } = round
  for (let left = max - claimExpired(round, queue, expiredShare(max)); left > 0; ) {
    const wanted = Math.min(left, rooms.total)
    const rows = readyRows(round, queue, wanted)
    const taken = rows.filter((row) => rooms.take(row[2]))
    leaseRows(round, queue, taken)
    // A room that became full on the way made others stay behind: the next query leaves its types out.
    if (rows.length < wanted || taken.length === rows.length) return
    left -= taken.length
  }
}

/** An expired item needs no room: its claimer only ends it. Yields how many were taken. */
function claimExpired(round: Round, queue: string, share: number): number {
  const { sql, rooms, paused, now } = round
  if (rooms.types === undefined || share <= 0) return 0
  const rows = withoutPaused(sql, paused, (limit) => sql.expired.all(queue, now, limit), share)
  leaseRows(round, queue, rows)
  return rows.length
}

function leaseRows({ sql, ask, token, now, leaseNow, items }: Round, queue: string, rows: readonly ReadyRow[]): void {
  if (rows.length === 0) return
  const seqs = JSON.stringify(rows.map(([seq]) => seq))
  sql.lease.run(token, leaseNow + ask.leaseMs, ask.worker, now, seqs)
  for (const row of rows) {
    items.push(claimed(row, queue, token, now + ask.leaseMs))
    if (row[16] & HAS_TAGS) sql.stateTags.run(ACTIVE, row[0])
  }
}

/** The first items of the queue that there is room for, once those of paused types before them are held. */
function readyRows({ sql, rooms, paused }: Round, queue: string, max: number): ReadyRow[] {
  if (rooms.areFull) return []
  const { types } = rooms
  const find = (limit: number) =>
    types === undefined ? sql.ready.all(queue, limit) : readyOf(sql, queue, types, limit)
  return withoutPaused(sql, paused, find, max)
}

/** What is found once the items of paused types are held; nothing where those are too many for one claim. */
function withoutPaused(sql: Statements, paused: Paused, find: (limit: number) => ReadyRow[], max: number): ReadyRow[] {
  for (let count = 0; ; ) {
    const rows = find(max)
    if (paused.types.size === 0) return rows
    const held = rows.filter((row) => paused.types.has(row[2]))
    if (held.length === 0) return rows
    for (const row of held) {
      sql.holdPaused.run(holdKey('type', row[2]), row[0])
      if (row[16] & HAS_TAGS) sql.stateTags.run(BLOCKED, row[0])
    }
    count += held.length
    if (count >= MAX_HELD) return []
  }
}

/**
 * The walk passes over what there is no room for, however much that is. So it is only begun where an index knows that something
 * can be found, and where the first of the queue are not all of these types, as they most often are.
 */
function readyOf(sql: Statements, queue: string, types: ReadonlySet<string>, max: number): ReadyRow[] {
  const head = sql.headType.get(queue)?.[0]
  if (head === undefined) return []
  const hasRoomForHead = types.has(head)
  if (hasRoomForHead) {
    const rows = sql.ready.all(queue, max)
    if (rows.every((row) => types.has(row[2]))) return rows
  }
  const list = listOf(types)
  if (!hasRoomForHead && sql.anyWaitingOf.get(queue, list)?.[0] !== 1) return []
  return sql.readyOf.all(queue, list, max)
}

/** The row was read before it was leased: the lease adds one to fence and deliveries. */
function claimed(row: ReadyRow, queue: string, token: string, until: At): ClaimedItem {
  const [seq, id, type, groupId, priority, attempt, queueAt, startAt, input, rest, waiter, fence, lapses, crashes] = row
  const named: Envelope = { id, type, groupId, input, queueAt, startAt, attempt, priority }
  const item = {
    lease: { id, queue, token: `${token}${seq}`, fence: fence + 1, until },
    envelope: waiter === null && rest === null ? named : withRest(named, waiter, rest),
    lapses,
    crashes,
    deliveries: row[14] + 1,
  }
  const [met, cancelled] = [row[15], row[17]]
  if (met === null && cancelled === null) return item
  return {
    ...item,
    ...(met === null ? {} : { gate: { met: met === 1 } }),
    ...(cancelled === null ? {} : { cancelReason: cancelled }),
  }
}

/** Bodies that came through the plain queue become items; what is no envelope is reported and removed. */
function adoptBodies({ sql, now, leases, notifications, unreadable }: Round, queue: string): void {
  const bodies = sql.foreignBodies.all(queue, STEP)
  if (bodies.length === 0) return
  const groups = new GroupTable(sql, now, notifications)
  const context: CommitContext = {
    sql,
    now,
    leases,
    notifications,
    groups,
    gates: new GateTable(sql, now, notifications),
  }
  for (const [seq, body, dueAt, id] of bodies) {
    sql.deleteMessage.run(seq)
    const item = readEnvelope(body)
    if (item === undefined) {
      unreadable.push({ queue, body })
      // Its sender was told that it is accepted: it is kept where people look.
      sql.deadLetter.run(queue, body, NOT_AN_ENVELOPE, now, id, null)
    } else if (sql.itemRow.get(item.id) === undefined)
      // It is not counted into its group: its sender did that, or there is no group.
      enqueueAll(context, [{ do: 'enqueue', item, queue, delayMs: Math.max(0, dueAt - now) }], new Map(), [])
  }
  context.groups.close()
}
