import type { At, Ms } from '../../../core/time/time.js'
import { unreachable } from '../../../core/unreachable.js'
import type { Envelope, EnvelopeHead, Hold } from '../../../ports/item.js'
import { type Bytes, bytesOfBody } from '../items/bytes.js'
import type { DeadLetters } from './dead-letters.js'
import { isDueBefore, Message, type MessageLease } from './message.js'
import { ReadyByType } from './ready-by-type.js'
import { TimeList } from './time-list.js'

/** What a queue writes down of its changes, when it has a file. */
export interface ChangeLog {
  put(queue: string, message: Message): void
  leased(message: Message): void
  /** The holder of its lease says that its handler runs, or no longer does. */
  running(message: Message): void
  lapsed(message: Message): void
  gone(message: Message): void
  /** It is in its queue again, or in another place of it. */
  moved(message: Message): void
  /** One more of its deliveries began to run. */
  started(message: Message): void
  /** A consumer keeps this with it. */
  noted(message: Message): void
}

/** Names messages: a number that rises, and the process in which it does. */
export interface Numbering {
  readonly origin: string
  next(): number
}

/**
 * A claim promotes at most this many due messages, or as many as it wants: when a million fall due in the same second, no
 * claim takes long, and the next ones go on.
 */
export const PROMOTE_STEP = 1_000

/**
 * The messages of one queue and where each of them stands. It knows nothing of ports, ledgers or files: who changes it
 * flushes the log and wakes the workers afterwards.
 */
export class MessageQueue {
  readonly name: string
  readonly dead: DeadLetters
  readonly #log: ChangeLog | undefined
  readonly #numbering: Numbering
  readonly #bytes: Bytes
  readonly #ready = new ReadyByType()
  readonly #delayed = new TimeList<Message>(isDueBefore, place)
  /** By the end each lease had when it was filed. */
  readonly #leased = new TimeList<Message>((a, b) => a.lease!.filedEnd < b.lease!.filedEnd, place)
  /** Held without a due time: nothing but their hold frees them. */
  readonly #held = new Set<Message>()
  readonly #keys = new Map<string, Message>()
  /** Leases whose holder knows nothing but the token: those of plain `pop`. The ledger finds its own by item. */
  readonly #byToken = new Map<string, Message>()
  #size = 0

  constructor(name: string, dead: DeadLetters, numbering: Numbering, log: ChangeLog | undefined, bytes: Bytes) {
    this.name = name
    this.dead = dead
    this.#numbering = numbering
    this.#log = log
    this.#bytes = bytes
  }

  /** Leased, visible, delayed and held. */
  get size(): number {
    return this.#size
  }

  hasKey(dedupeKey: string): boolean {
    return this.#keys.has(dedupeKey)
  }

  /** A message for this queue, with its number. Outside of it until it enters. */
  draft(content: string | Envelope, dueAt: At, priority: number, dedupeKey?: string): Message {
    const message = new Message(this.#numbering.next(), content, dueAt, priority, dedupeKey)
    message.origin = this.#numbering.origin
    return message
  }

  /** A new message. The caller has checked that its key is free. */
  enter(message: Message, now: At): void {
    this.take(message, now)
    this.#log?.put(this.name, message)
  }

  /** A message that has its number already: read from the file, or moved here. */
  take(message: Message, now: At): void {
    message.queueName = this.name
    if (message.dedupeKey !== undefined) this.#keys.set(message.dedupeKey, message)
    this.#size += 1
    this.#weigh(message, message.text)
    this.#file(message, now)
  }

  /** Frees every lease that has run out, and reports each whose handler ran. */
  reclaim(steady: Ms, now: At, crashed?: (message: Message) => void): void {
    for (;;) {
      const message = this.#leased.peek()
      const lease = message?.lease
      if (message === undefined || lease === undefined || lease.filedEnd > steady) return
      this.#leased.remove(message, message.slot)
      if (lease.end > steady) {
        // It was extended since: a heartbeat only wrote the new end, and is filed here, once per lease time at most.
        lease.filedEnd = lease.end
        this.#leased.add(message)
        continue
      }
      message.lapses += 1
      if (lease.running) {
        message.crashes += 1
        crashed?.(message)
      }
      this.#endLease(message)
      this.#file(message, now)
      this.#log?.lapsed(message)
      message.owner?.lapsed(message)
    }
  }

  /** Moves what has fallen due to the ready ones, at most so many. True: some that are due are left. */
  promote(now: At, max = Number.POSITIVE_INFINITY): boolean {
    for (let moved = 0; ; moved += 1) {
      const message = this.#delayed.peek()
      if (message === undefined || message.dueAt > now) return false
      if (moved >= max) return true
      this.#delayed.remove(message, message.slot)
      const { hold } = message
      message.hold = undefined
      this.#file(message, now)
      message.owner?.becameReady(message, hold)
    }
  }

  /** The next in the order of claim, of these types or of one that no ledger has read. Without types: of any. */
  nextReady(types?: Iterable<string>): Message | undefined {
    return this.#ready.peek(types)
  }

  /** The next of any type whose deadline has passed. */
  nextExpired(now: At): Message | undefined {
    return this.#ready.expired(now)
  }

  /** A ledger has read the message: from now on it is listed by its type. */
  sort(message: Message, { type, deadline }: EnvelopeHead): void {
    if (message.type === type) return
    const isReady = message.place === 'ready'
    if (isReady) this.#ready.remove(message)
    message.type = type
    message.deadline = deadline
    if (isReady) this.#ready.add(message)
  }

  /** When the next delayed message falls due. */
  nextDueAt(): At | undefined {
    return this.#delayed.peek()?.dueAt
  }

  lease(message: Message, lease: MessageLease): void {
    this.#unfile(message)
    message.deliveries += 1
    message.fence += 1
    message.lease = lease
    message.place = 'leased'
    this.#leased.add(message)
    this.#log?.leased(message)
  }

  /** Makes a lease findable by its token. */
  indexToken(message: Message, lease: MessageLease): void {
    this.#byToken.set(lease.token, message)
    lease.isIndexed = true
  }

  /** The message whose current lease has this token. */
  leasedBy(token: unknown): Message | undefined {
    return this.#byToken.get(token as string)
  }

  /** The lease now ends this long from now. */
  extend(message: Message, leaseMs: Ms, steady: Ms, now: At): void {
    const { lease } = message
    if (lease === undefined) return
    lease.end = steady + leaseMs
    lease.until = now + leaseMs
    if (lease.end >= lease.filedEnd) return
    // Shorter than it was: where it is filed it would be found too late.
    this.#leased.remove(message, message.slot)
    lease.filedEnd = lease.end
    this.#leased.add(message)
  }

  /** Its holder says whether the handler runs: what becomes of the lease when it lapses. */
  setRunning(message: Message, running: boolean): void {
    const { lease } = message
    if (lease === undefined || lease.running === running) return
    lease.running = running
    this.#log?.running(message)
  }

  /** A plain consumer begins to run it: once for each lease. */
  start(message: Message): void {
    const { lease } = message
    if (lease === undefined || lease.isStarted) return
    lease.isStarted = true
    message.starts += 1
    this.#log?.started(message)
  }

  /** Keeps a text with a message, for its next delivery. */
  keepNote(message: Message, note: string): void {
    message.note = note
    this.#log?.noted(message)
  }

  /** Takes a message out for good. */
  remove(message: Message): void {
    this.#unfile(message)
    this.#endLease(message)
    message.place = 'nowhere'
    if (message.dedupeKey !== undefined) this.#keys.delete(message.dedupeKey)
    this.#size -= 1
    this.#weigh(message, undefined)
    this.#log?.gone(message)
  }

  /** Ends a lease, a delay or a hold and files the message anew. Without `dueAt` it keeps its due time, hence its place. */
  refile(message: Message, now: At, dueAt: At | undefined, hold: Hold | undefined): void {
    this.#unfile(message)
    this.#endLease(message)
    if (dueAt !== undefined) message.dueAt = dueAt
    message.hold = hold
    this.#file(message, now)
    this.#log?.moved(message)
  }

  /** The next try of an item: what it carries has changed, and its deliveries count from the start. */
  replace(message: Message, next: Envelope, now: At, dueAt: At): void {
    this.#unfile(message)
    this.#endLease(message)
    message.carry(next)
    this.#weigh(message, undefined)
    message.dueAt = dueAt
    message.priority = next.priority
    message.hold = undefined
    message.deliveries = 0
    this.#file(message, now)
    this.#log?.put(this.name, message)
  }

  *messages(): IterableIterator<Message> {
    yield* this.#ready.values()
    yield* this.#delayed.values()
    yield* this.#leased.values()
    yield* this.#held
  }

  /**
   * A hold with a due time still to come ends then at the latest; any other lasts until it is freed, and the due time
   * is kept as its place in the order for that day.
   */
  #file(message: Message, now: At): void {
    const isDue = message.dueAt <= now
    if (isDue && message.hold === undefined) {
      message.place = 'ready'
      this.#ready.add(message)
    } else if (isDue || message.dueAt === Number.POSITIVE_INFINITY) {
      message.place = 'held'
      this.#held.add(message)
    } else {
      message.place = 'delayed'
      this.#delayed.add(message)
    }
  }

  #unfile(message: Message): void {
    switch (message.place) {
      case 'ready':
        this.#ready.remove(message)
        return
      case 'delayed':
        this.#delayed.remove(message, message.slot)
        return
      case 'leased':
        this.#leased.remove(message, message.slot)
        return
      case 'held':
        this.#held.delete(message)
        return
      case 'nowhere':
        return
      default:
        unreachable(message.place)
    }
  }

  /** An envelope is counted with its item. */
  #weigh(message: Message, text: string | undefined): void {
    const bytes = text === undefined ? 0 : bytesOfBody(text)
    this.#bytes.stored += bytes - message.weight
    message.weight = bytes
  }

  #endLease(message: Message): void {
    if (message.lease?.isIndexed === true) this.#byToken.delete(message.lease.token)
    message.lease = undefined
  }
}

function place(message: Message, slot: number): void {
  message.slot = slot
}
