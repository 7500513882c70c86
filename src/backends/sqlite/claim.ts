import { Heap } from '../../core/collections/heap.js'
import type { At, Ms } from '../../core/time/time.js'
import { readEnvelope } from '../../ports/envelope.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { ClaimReply, ClaimRequest } from '../../ports/ledger.js'
import { NOT_AN_ENVELOPE } from '../../ports/pushed-natively.js'
import { expiredShare } from '../shared/expired-share.js'
import type { Notifications } from '../shared/notifications.js'
import { RoomsLeft, typesWithRoom } from '../shared/rooms-left.js'
import { ACTIVE, BLOCKED, WAITING } from '../shared/state-codes.js'
import { Profiles, withRest } from './columns.js'
import { enqueueAll } from './enqueue.js'
import { GateTable } from './gate-table.js'
import { GroupTable } from './group-table.js'
import type { CommitContext } from './item-effects.js'
import { HAS_TAGS } from './item-flags.js'
import type { Leases } from './lease.js'
import { holdKey, type Paused, pausedNow } from './pauses.js'
import { holdItems, listOf } from './places.js'
import type { ReadyKey, ReadyRow, Statements } from './sql.js'
import { moveTags, promote } from './tags.js'

/** How many lapsed leases and due items one claim brings back: bounded, so that a claim after a long sleep is not slow. */
const STEP = 1_000
/** How many leases it looks at together for that. Most hold on, by their heartbeats, and are looked at again when those have run out. */
const LEASES_STEP = 1_000
/** How many keys of a type are read at a time, at most, while several types are merged. */
const MOST_KEYS = 64
/** One claim holds back about this many items of paused types, at most. */
const MAX_HELD = 1_024

interface Round {
  readonly sql: Statements
  readonly ask: ClaimRequest
  readonly now: At
  readonly leases: Leases
  /** The time of leases. */
  readonly leaseNow: Ms
  readonly rooms: RoomsLeft
  readonly profiles: Profiles
  readonly notifications: Notifications
  readonly paused: Paused
  readonly items: ClaimedItem[]
  readonly unreadable: { readonly queue: string; readonly body: string }[]
  readonly crashed: string[]
  /** How many items of paused types it has held back so far. */
  heldBack: number
}

const NONE: readonly never[] = []

/** Leases what is ready, inside the caller's write transaction. The tokens begin with `token`, and end with the number of the item. */
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
  const found = { items: [], unreadable: [], crashed: [], profiles: new Profiles(sql) }
  const round: Round = { sql, ask, now, leases, leaseNow, rooms, notifications, paused, ...found, heldBack: 0 }
  let more = false
  let nextDueAt: At | undefined
  for (const [i, { queue, max }] of ask.queues.entries()) {
    adoptBodies(round, queue)
    reclaim(round, queue)
    promote(sql, queue, now, STEP)
    if (!paused.queues.has(queue)) {
      claimFrom(round, queue, max, i === 0 ? token : `${token}${i}.`)
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
function reclaim(round: Round, queue: string): void {
  for (let count = 0; count < STEP; ) {
    const leases = round.sql.lapsedLeases.all(queue, round.leaseNow, LEASES_STEP).map(([no]) => no)
    if (leases.length > 0) count += reclaimFrom(round, leases)
    if (leases.length < LEASES_STEP) return
  }
}

/** Yields how many items came back. None of these leases is found again, unless not all that they held has come back. */
function reclaimFrom({ sql, leaseNow, crashed }: Round, leases: readonly number[]): number {
  const lapsed = sql.lapsed.all(listOf(leases), leaseNow, STEP)
  for (const [, , type, wasRunning] of lapsed) if (wasRunning === 1) crashed.push(type)
  const seqs = listOf(lapsed.map(([seq]) => seq))
  sql.reclaim.run(seqs)
  sql.dropAllHeld.run(seqs)
  sql.addReady.run(seqs)
  moveTags(sql, lapsed, WAITING)
  // Heartbeats leave the row of the lease alone: what is still held says until when.
  const open = new Map(sql.openOfLeases.all(listOf(leases)).map(([no, ...of]) => [no, of]))
  for (const no of leases) {
    const [until, count] = open.get(no) ?? []
    if (until === undefined || count === undefined) sql.dropLease.run(no)
    else sql.setLease.run(until, count, no)
  }
  return lapsed.length
}

/** The same claim would find work again. Of what has only fallen due, or came as a body, the type is not asked: a claim sees to that. */
function hasMore(round: Round, queue: string): boolean {
  const { sql, now, ask } = round
  const types = typesWithRoom(ask.rooms)
  if (types !== undefined && hasExpired(round, queue)) return true
  if (types?.size === 0) return false
  const isReady =
    types === undefined
      ? sql.anyReady.get(queue)?.[0] === 1
      : sql.readyTypes.all(queue, queue).some(([type]) => types.has(type))
  return isReady || sql.anyToCome.get(queue, now, queue)?.[0] === 1
}

/** In the order of the queue: the first of each type that there is room for, once those of paused types are held back. */
function claimFrom(round: Round, queue: string, max: number, token: string): void {
  const { sql, rooms, paused } = round
  const expired = claimExpired(round, queue, expiredShare(max))
  const left = max - expired.length
  const types: string[] = []
  if (left > 0 && !rooms.areFull)
    for (const [type] of sql.readyTypes.all(queue, queue))
      if (rooms.types?.has(type) === false) continue
      else if (paused.types.has(type)) holdBackFirst(round, queue, type)
      else types.push(type)
  const rows =
    types.length === 1
      ? firstOf(round, queue, types[0]!, Math.min(left, rooms.total))
      : firstOfAll(round, queue, types, Math.min(left, rooms.total))
  leaseRows(round, queue, [...expired, ...rows], token)
}

/** Of one type, which needs no look at the others. */
function firstOf({ sql, rooms }: Round, queue: string, type: string, wanted: number): readonly ReadyRow[] {
  const rows = sql.ready.all(queue, type, wanted)
  const full = rows.findIndex(() => !rooms.take(type))
  if (full >= 0) rows.length = full
  const last = rows.at(-1)
  if (last !== undefined) sql.takeReady.run(queue, type, -last[4], last[17], last[0])
  return rows
}

/** Of several types: their keys are read in the order of each, more and more at a time, and merged. */
function firstOfAll({ sql, rooms }: Round, queue: string, types: readonly string[], wanted: number): ReadyRow[] {
  const fronts = new Heap<Front>((a, b) => isBefore(a.keys[a.at]!, b.keys[b.at]!))
  const read = (type: string, [rank, dueAt, seq]: ReadyKey, step: number): void => {
    const keys = sql.readyKeys.all(queue, type, rank, dueAt, seq, step)
    if (keys.length > 0) fronts.push({ type, keys, at: 0, step })
  }
  // Of a thousand types most are asked for one key only.
  for (const type of types) read(type, BEFORE_ALL, Math.ceil(MOST_KEYS / types.length))
  const taken: number[] = []
  const lastOf = new Map<string, ReadyKey>()
  while (taken.length < wanted) {
    const front = fronts.pop()
    if (front === undefined) break
    const { type, keys, step } = front
    // A room that is full stays full: its types are passed over from here on.
    if (!rooms.take(type)) continue
    const key = keys[front.at]!
    taken.push(key[2])
    lastOf.set(type, key)
    front.at += 1
    if (front.at < keys.length) fronts.push(front)
    else if (keys.length === step) read(type, key, Math.min(4 * step, MOST_KEYS))
  }
  for (const [type, key] of lastOf) sql.takeReady.run(queue, type, ...key)
  const bySeq = new Map(taken.length === 0 ? [] : sql.readyRows.all(listOf(taken)).map((row) => [row[0], row]))
  return taken.map((seq) => bySeq.get(seq)!)
}

/** What is left of the keys of one type that have been read. */
interface Front {
  readonly type: string
  readonly keys: readonly ReadyKey[]
  at: number
  /** How many were asked for. */
  readonly step: number
}

const BEFORE_ALL: ReadyKey = [Number.NEGATIVE_INFINITY, 0, 0]

const isBefore = (a: ReadyKey, b: ReadyKey): boolean => (a[0] - b[0] || a[1] - b[1] || a[2] - b[2]) < 0

/** An expired item needs no room: its claimer only ends it. */
function claimExpired(round: Round, queue: string, share: number): readonly ReadyRow[] {
  if (round.rooms.types === undefined || share <= 0) return NONE
  const rows = firstExpired(round, queue, share)
  for (const [seq] of rows) round.sql.dropReady.run(seq)
  return rows
}

/** The first that have expired, once those of paused types before them are held back. None where those are too many for one claim. */
function firstExpired(round: Round, queue: string, wanted: number): readonly ReadyRow[] {
  const { sql, paused, now } = round
  for (;;) {
    const rows = sql.expired.all(queue, now, wanted)
    const held = rows.filter((row) => paused.types.has(row[2]))
    if (held.length === 0) return rows
    // Not the first of their types: these may stand behind any number of others.
    for (const [seq] of held) sql.dropReady.run(seq)
    holdBack(round, held)
    if (round.heldBack >= MAX_HELD) return NONE
  }
}

/** Whether the same claim would find something expired, or had to hold back more before it knows. */
function hasExpired(round: Round, queue: string): boolean {
  if (round.sql.anyExpired.get(queue, round.now)?.[0] !== 1) return false
  if (round.paused.types.size === 0 || round.heldBack >= MAX_HELD) return true
  return firstExpired(round, queue, 1).length > 0 || round.heldBack >= MAX_HELD
}

/** The first items of a paused type go out of the way, as many as one claim still may hold back. */
function holdBackFirst(round: Round, queue: string, type: string): void {
  const { sql, heldBack } = round
  const rows = sql.ready.all(queue, type, Math.max(0, MAX_HELD - heldBack))
  const last = rows.at(-1)
  if (last === undefined) return
  sql.takeReady.run(queue, type, -last[4], last[17], last[0])
  holdBack(round, rows)
}

/** These items of paused types are no longer ready. */
function holdBack(round: Round, rows: readonly ReadyRow[]): void {
  const { sql } = round
  round.heldBack += rows.length
  for (const type of new Set(rows.map((row) => row[2]))) {
    const ofType = rows.filter((row) => row[2] === type)
    sql.holdPaused.run(holdKey('type', type), listOf(ofType.map(([seq]) => seq)))
  }
  moveTags(
    sql,
    rows.map((row) => [row[0], row[15]]),
    BLOCKED,
  )
}

function leaseRows(
  { sql, ask, now, leaseNow, items, profiles }: Round,
  queue: string,
  rows: readonly ReadyRow[],
  token: string,
): void {
  if (rows.length === 0) return
  const { leaseMs, worker } = ask
  const seqs = rows.map(([seq]) => seq)
  const no = holdItems(sql, seqs, { token, queue, until: leaseNow + leaseMs, worker }, now)
  for (const row of rows) {
    items.push(claimed(row, queue, token, no, now + leaseMs, profiles))
    if (row[15] & HAS_TAGS) sql.stateTags.run(ACTIVE, row[0])
  }
}

/** The row counts the deliveries that were put back; this one comes on top. */
function claimed(
  row: ReadyRow,
  queue: string,
  token: string,
  fence: number,
  until: At,
  profiles: Profiles,
): ClaimedItem {
  const [seq, id, type, group, priority, attempt, queueAt, startAt, input, own, waiter, lapses, crashes, put] = row
  const rest = profiles.restOf(row[18], own)
  const named: Envelope = { id, type, groupId: group ?? id, input, queueAt, startAt, attempt, priority }
  const item = {
    lease: { id, queue, token: `${token}${seq}`, fence, until },
    envelope: waiter === null && rest === null ? named : withRest(named, waiter, rest),
    lapses,
    crashes,
    deliveries: put + 1,
  }
  const [met, cancelled] = [row[14], row[16]]
  if (met === null && cancelled === null) return item
  return {
    ...item,
    ...(met === null ? {} : { gate: { met: met === 1 } }),
    ...(cancelled === null ? {} : { cancelReason: cancelled }),
  }
}

/** Bodies that came through the plain queue become items; what is no envelope is reported and removed. */
function adoptBodies({ sql, now, leases, notifications, unreadable, profiles }: Round, queue: string): void {
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
    profiles,
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
