import { newToken } from '../../../core/ids.js'
import type { At, Ms } from '../../../core/time/time.js'
import type { ClaimedItem, Envelope } from '../../../ports/item.js'
import type { ClaimReply, ClaimRequest } from '../../../ports/ledger.js'
import { NOT_AN_ENVELOPE } from '../../../ports/pushed-natively.js'
import { expiredShare } from '../../shared/expired-share.js'
import { RoomsLeft, typesWithRoom } from '../../shared/rooms-left.js'
import { adopt } from '../items/adopt.js'
import { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'
import { type Message, MessageLease } from '../queue/message.js'
import { type MessageQueue, PROMOTE_STEP } from '../queue/message-queue.js'
import { durationOf, type Time } from '../time.js'

/** One claim passes over at most this many messages that it cannot lease: paused ones, unreadable ones, ended ones. */
const MAX_PASSED_OVER = 1_024
/** One claim removes this many expired items and groups, so that an idle system gets rid of them too. */
const SWEEP_STEP = 8
/** A second message of an item that is running waits this long before it is claimed again. */
const TWIN_WAIT: Ms = 1_000

interface Round {
  readonly ask: ClaimRequest
  readonly now: At
  readonly steady: Ms
  readonly leaseMs: Ms
  readonly rooms: RoomsLeft
  readonly items: ClaimedItem[]
  readonly unreadable: { readonly queue: string; readonly body: string }[]
  readonly crashed: string[]
  passedOver: number
}

/** Frees what has lapsed, promotes what is due, and leases what is next, queue by queue. */
export function claimItems(table: ItemTable, ask: ClaimRequest, time: Time): ClaimReply {
  const round: Round = {
    ask,
    now: time.wall(),
    steady: time.steady(),
    leaseMs: durationOf(ask.leaseMs),
    rooms: new RoomsLeft(ask.rooms),
    items: [],
    unreadable: [],
    crashed: [],
    passedOver: 0,
  }
  let more = table.pauses.free(round.now)
  const types = typesWithRoom(ask.rooms)
  let nextDueAt = Number.POSITIVE_INFINITY
  for (const { queue: name, max } of ask.queues) {
    const queue = table.context.queues.named(name)
    queue.reclaim(round.steady, round.now, (message) => round.crashed.push(typeOf(message)))
    const hasDue = queue.promote(round.now, Math.max(PROMOTE_STEP, max))
    claimFrom(table, queue, max, round)
    // The same claim, made again: with all the room that it came with.
    if (max > 0 && types?.size !== 0) more ||= hasDue || queue.nextReady(types) !== undefined
    if (max > 0 && types !== undefined) more ||= queue.nextExpired(round.now) !== undefined
    nextDueAt = Math.min(nextDueAt, queue.nextDueAt() ?? nextDueAt)
  }
  table.sweep(round.now, SWEEP_STEP)
  table.trim(round.now)
  const removed = table.takeRemoved()
  table.context.settled()
  return {
    items: round.items,
    more,
    now: round.now,
    ...(nextDueAt === Number.POSITIVE_INFINITY ? undefined : { nextDueAt }),
    ...(round.unreadable.length === 0 ? undefined : { unreadable: round.unreadable }),
    ...(round.crashed.length === 0 ? undefined : { crashed: round.crashed }),
    ...(removed === 0 ? undefined : { removed }),
  }
}

function typeOf(message: Message): string {
  return message.read()?.type ?? ''
}

function claimFrom(table: ItemTable, queue: MessageQueue, max: number, round: Round): void {
  const wanted = round.items.length + max
  const { rooms, items } = round
  if (rooms.types !== undefined) claimExpired(table, queue, items.length + expiredShare(max), round)
  while (items.length < wanted && round.passedOver < MAX_PASSED_OVER && !rooms.areFull) {
    const message = queue.nextReady(rooms.types)
    if (message === undefined) return
    const record = recordOf(table, queue, message, round)
    if (record !== undefined) queue.sort(message, record.envelope)
    if (record === undefined || !rooms.take(record.envelope.type)) round.passedOver += 1
    else items.push(leaseOut(table, queue, message, record, round))
  }
}

/** An expired item needs no room, since its claimer only ends it. It gets a share of the claim, so that the others come too. */
function claimExpired(table: ItemTable, queue: MessageQueue, wanted: number, round: Round): void {
  while (round.items.length < wanted && round.passedOver < MAX_PASSED_OVER) {
    const message = queue.nextExpired(round.now)
    if (message === undefined) return
    const record = recordOf(table, queue, message, round)
    if (record === undefined) round.passedOver += 1
    else round.items.push(leaseOut(table, queue, message, record, round))
  }
}

/** The item of a message that can be leased. Undefined: the message was dealt with and is no longer first. */
function recordOf(table: ItemTable, queue: MessageQueue, message: Message, round: Round): ItemRecord | undefined {
  const { owner } = message
  if (!(owner instanceof ItemRecord)) return foreign(table, queue, message, message.read(), round)
  if (!table.pauses.areNone && table.pauses.hold(queue, owner.envelope.type, message, round.now)) {
    table.stateChanged(owner)
    return undefined
  }
  return owner
}

/** A message that was pushed as text, or that came from the file. */
function foreign(
  table: ItemTable,
  queue: MessageQueue,
  message: Message,
  envelope: Envelope | undefined,
  round: Round,
): ItemRecord | undefined {
  const { now } = round
  if (envelope === undefined) {
    round.unreadable.push({ queue: queue.name, body: message.body })
    // Its sender was told that it is accepted: it is kept where people look.
    queue.dead.add({ body: message.body, error: NOT_AN_ENVELOPE }, message.body, { id: message.id, at: now })
    discard(table, queue, message)
    return undefined
  }
  table.context.queues.markRead(message)
  const known = table.item(envelope.id, now)
  if (known?.hasEnded === true) {
    discard(table, queue, message)
    return undefined
  }
  if (known?.message?.place === 'leased') {
    queue.refile(message, now, now + TWIN_WAIT, undefined)
    return undefined
  }
  // Two messages of one item, which is not running: one is enough.
  if (known?.message !== undefined) discard(table, known.queue, known.message)
  if (known === undefined) adopt(table, envelope, message)
  else table.link(known, message, envelope)
  return recordOf(table, queue, message, round)
}

function discard(table: ItemTable, queue: MessageQueue, message: Message): void {
  queue.remove(message)
  table.context.queues.markRead(message)
}

function leaseOut(
  table: ItemTable,
  queue: MessageQueue,
  message: Message,
  record: ItemRecord,
  round: Round,
): ClaimedItem {
  const { ask, now } = round
  const held = new MessageLease(newToken(), ask.worker, round.leaseMs, round.steady, now)
  queue.lease(message, held)
  record.status = 'running'
  record.fence = message.fence
  record.runAt = now
  table.stateChanged(record)
  const lease = { id: record.id, queue: queue.name, token: held.token, fence: record.fence, until: held.until }
  const { lapses, crashes, deliveries, gate } = message
  const { envelope } = record
  const cancelled = record.extras?.cancelled
  if (gate === undefined && cancelled === undefined) return { lease, envelope, lapses, crashes, deliveries }
  return {
    lease,
    envelope,
    lapses,
    crashes,
    deliveries,
    ...(gate === undefined ? undefined : { gate: { met: gate.met } }),
    ...(cancelled === undefined ? undefined : { cancelReason: cancelled }),
  }
}
