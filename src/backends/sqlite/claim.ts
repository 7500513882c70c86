import type { At, Ms } from '../../core/time.js'
import { readEnvelope } from '../../ports/envelope.js'
import { expiredShare } from '../../ports/expired-share.js'
import type { Claimed, Envelope } from '../../ports/item.js'
import type { ClaimAsk, ClaimReply } from '../../ports/ledger.js'
import { RoomsLeft, typesWithRoom } from '../../ports/rooms-left.js'
import { withRest } from './columns.js'
import { GateBook } from './gate-book.js'
import { GroupBook } from './group-book.js'
import type { Pass } from './item-effects.js'
import type { Leases } from './leases.js'
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
  readonly leases: Leases
  /** The time of leases. */
  readonly leaseNow: Ms
  readonly rooms: RoomsLeft
  readonly told: Told
  readonly paused: Paused
  readonly items: Claimed[]
  readonly unreadable: { readonly queue: string; readonly body: string }[]
  readonly crashed: string[]
}

/** Leases what is ready, inside the caller's write transaction. */
export function claimReady(
  sql: Statements,
  ask: ClaimAsk,
  token: string,
  now: At,
  leases: Leases,
  told: Told,
): ClaimReply {
  const paused = pausedNow(sql, now, told)
  const rooms = new RoomsLeft(ask.rooms)
  const leaseNow = leases.now(sql)
  const found = { items: [], unreadable: [], crashed: [] }
  const round: Round = { sql, ask, token, now, leases, leaseNow, rooms, told, paused, ...found }
  let more = false
  let nextDueAt: At | undefined
  for (const { queue, max } of ask.from) {
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
    at: now,
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
    // A room that became full on the way made others stay behind: what comes after them is looked for without its types.
    if (rows.length < wanted || taken.length === rows.length) return
    left -= taken.length
  }
}

/** What has expired needs no room: whoever claims it ends it. Yields how many were taken. */
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

/** The first items of the queue that there is room for, once those of paused types that stand before them have been set aside. */
function readyRows({ sql, rooms, paused }: Round, queue: string, max: number): ReadyRow[] {
  if (rooms.areFull) return []
  const { types } = rooms
  const find = (limit: number) =>
    types === undefined ? sql.ready.all(queue, limit) : readyOf(sql, queue, types, limit)
  return withoutPaused(sql, paused, find, max)
}

/** What is found once that of paused types has been set aside; nothing where that is too much for one claim. */
function withoutPaused(sql: Statements, paused: Paused, find: (limit: number) => ReadyRow[], max: number): ReadyRow[] {
  for (let aside = 0; ; ) {
    const rows = find(max)
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
function claimed(row: ReadyRow, queue: string, token: string, until: At): Claimed {
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
    ...(cancelled === null ? {} : { cancelled }),
  }
}

/** Bodies that came through the plain queue become items; what is no envelope is reported and removed. */
function adoptBodies({ sql, now, leases, told, unreadable }: Round, queue: string): void {
  const bodies = sql.foreignBodies.all(queue, STEP)
  if (bodies.length === 0) return
  const groups = new GroupBook(sql, now, told)
  const pass: Pass = { sql, now, leases, told, groups, gates: new GateBook(sql, now, told) }
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
