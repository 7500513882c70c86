import { newToken } from '../../core/ids.js'
import type { At, Ms } from '../../core/time.js'
import { expiredShare } from '../../ports/expired-share.js'
import type { Claimed, Envelope } from '../../ports/item.js'
import type { ClaimAsk, ClaimReply } from '../../ports/ledger.js'
import { RoomsLeft, typesWithRoom } from '../../ports/rooms-left.js'
import { adopt } from './adopt.js'
import type { Book } from './book.js'
import { ItemRecord } from './item-record.js'
import { type Message, MessageLease } from './message.js'
import { type MessageQueue, PROMOTE_STEP } from './message-queue.js'
import { isHeldByPlainGate } from './plain-gate.js'
import { takeOver } from './plain-texts.js'
import { durationOf, type Time } from './time.js'

/** So many messages that cannot be handed out are looked at in one claim: paused ones, strangers, ones that are over. None twice. */
const MAX_PASSED_OVER = 1_024
/** So many of the ended items and groups whose time is over go with one claim: an idle system gets rid of them, too. */
const SWEEP_STEP = 8
/** A second message of an item that somebody is running waits this long before it is looked at again. */
const TWIN_WAIT: Ms = 1_000

interface Round {
  readonly ask: ClaimAsk
  readonly now: At
  readonly steady: Ms
  readonly leaseMs: Ms
  readonly rooms: RoomsLeft
  readonly items: Claimed[]
  readonly unreadable: { readonly queue: string; readonly body: string }[]
  readonly crashed: string[]
  passedOver: number
}

/** Frees what has lapsed, promotes what is due, and leases what is next, queue by queue. */
export function claimItems(book: Book, ask: ClaimAsk, time: Time): ClaimReply {
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
  let more = book.pauses.free(round.now)
  const types = typesWithRoom(ask.rooms)
  let nextDueAt = Number.POSITIVE_INFINITY
  for (const { queue: name, max } of ask.from) {
    const queue = book.shelf.queues.named(name)
    queue.reclaim(round.steady, round.now, (message) => round.crashed.push(typeOf(message)))
    const hasDue = queue.promote(round.now, Math.max(PROMOTE_STEP, max))
    claimFrom(book, queue, max, round)
    // The same claim, made again: with all the room that it came with.
    if (max > 0 && types?.size !== 0) more ||= hasDue || queue.nextReady(types) !== undefined
    if (max > 0 && types !== undefined) more ||= queue.nextExpired(round.now) !== undefined
    nextDueAt = Math.min(nextDueAt, queue.nextDueAt() ?? nextDueAt)
  }
  book.sweep(round.now, SWEEP_STEP)
  book.trim(round.now)
  const removed = book.takeRemoved()
  book.shelf.settled()
  return {
    items: round.items,
    more,
    at: round.now,
    ...(nextDueAt === Number.POSITIVE_INFINITY ? undefined : { nextDueAt }),
    ...(round.unreadable.length === 0 ? undefined : { unreadable: round.unreadable }),
    ...(round.crashed.length === 0 ? undefined : { crashed: round.crashed }),
    ...(removed === 0 ? undefined : { removed }),
  }
}

function typeOf(message: Message): string {
  const { owner } = message
  return (owner instanceof ItemRecord ? owner.envelope : message.read())?.type ?? ''
}

function claimFrom(book: Book, queue: MessageQueue, max: number, round: Round): void {
  const wanted = round.items.length + max
  const { rooms, items } = round
  if (rooms.types !== undefined) claimExpired(book, queue, items.length + expiredShare(max), round)
  while (items.length < wanted && round.passedOver < MAX_PASSED_OVER && !rooms.areFull) {
    const message = queue.nextReady(rooms.types)
    if (message === undefined) return
    const record = recordOf(book, queue, message, round)
    if (record !== undefined) queue.sort(message, record.envelope)
    if (record === undefined || !rooms.take(record.envelope.type)) round.passedOver += 1
    else items.push(leaseOut(book, queue, message, record, round))
  }
}

/** What has expired needs no room: whoever claims it ends it. A share of the claim, so that the others come, too. */
function claimExpired(book: Book, queue: MessageQueue, wanted: number, round: Round): void {
  while (round.items.length < wanted && round.passedOver < MAX_PASSED_OVER) {
    const message = queue.nextExpired(round.now)
    if (message === undefined) return
    const record = recordOf(book, queue, message, round)
    if (record === undefined) round.passedOver += 1
    else round.items.push(leaseOut(book, queue, message, record, round))
  }
}

/** The item of a message that can be handed out. Undefined: it has been dealt with and no longer stands in front. */
function recordOf(book: Book, queue: MessageQueue, message: Message, round: Round): ItemRecord | undefined {
  const { owner } = message
  if (owner instanceof ItemRecord && owner.message === message && book.known(owner.id) === owner) {
    if (owner.hasEnded) {
      // A plain system ended it and has not acked, or cannot: it is over all the same.
      discard(book, queue, message)
      owner.keeper.acked(owner, round.now)
      return undefined
    }
    if (!book.pauses.areNone && book.pauses.setAside(queue, owner.envelope.type, message, round.now)) {
      book.stateChanged(owner)
      return undefined
    }
    return owner
  }
  return stranger(book, queue, message, message.read(), round)
}

/** A message that the ledger did not push itself, or pushed under another prefix. */
function stranger(
  book: Book,
  queue: MessageQueue,
  message: Message,
  envelope: Envelope | undefined,
  round: Round,
): ItemRecord | undefined {
  const { now } = round
  if (envelope === undefined) {
    round.unreadable.push({ queue: queue.name, body: message.body })
    discard(book, queue, message)
    return undefined
  }
  // Of another prefix: there it is no longer to be found in a queue.
  if (message.owner instanceof ItemRecord) message.owner.keeper.acked(message.owner, now)
  book.shelf.queues.markRead(message)
  const known = book.item(envelope.id, now)
  if (known?.hasEnded === true) {
    discard(book, queue, message)
    return undefined
  }
  if (known?.message !== undefined && known.message !== message && known.message.place === 'leased') {
    queue.refile(message, now, now + TWIN_WAIT, undefined)
    return undefined
  }
  // Two messages of one item, and nobody runs it: one is enough.
  if (known?.message !== undefined && known.message !== message) discard(book, known.queue, known.message)
  if (known !== undefined && countPlainCrashes(known, message, envelope)) round.crashed.push(envelope.type)
  const record = known ?? adopt(book, envelope, message)
  if (known !== undefined) book.link(known, message, envelope)
  // A gate that a plain system opened: its item waits for it here as it would there.
  if (book.count.texts > 0 && isHeldByPlainGate(book, record, message, now)) return undefined
  return recordOf(book, queue, message, round)
}

/** A plain system counts crashes in the state, and one that still says "running" for this try is a crash nobody counted. */
function countPlainCrashes(record: ItemRecord, message: Message, envelope: Envelope): boolean {
  const counted = record.extras?.crashes ?? 0
  const isNew = record.status === 'running' && record.envelope.attempt === envelope.attempt
  message.crashes = Math.max(message.crashes, counted + (isNew ? 1 : 0))
  return isNew
}

/** Nothing can be done with it: it leaves the queue. */
function discard(book: Book, queue: MessageQueue, message: Message): void {
  queue.remove(message)
  book.shelf.queues.markRead(message)
}

function leaseOut(book: Book, queue: MessageQueue, message: Message, record: ItemRecord, round: Round): Claimed {
  const { ask, now } = round
  const held = new MessageLease(newToken(), ask.worker, round.leaseMs, round.steady, now)
  queue.lease(message, held)
  record.status = 'running'
  record.fence = message.fence
  record.runAt = now
  takeOver(book, record.id, held.token, now)
  book.stateChanged(record)
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
    ...(cancelled === undefined ? undefined : { cancelled }),
  }
}
