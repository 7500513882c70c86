import type { At, Ms } from '../../../core/time/time.js'
import { readEnvelope, writeEnvelope } from '../../../ports/envelope.js'
import type { Envelope, Hold } from '../../../ports/item.js'
import type { GateDecision } from '../groups/gate-table.js'
import { NO_SLOT } from './time-list.js'

/** Where in its queue a message stands. */
export type Place = 'nowhere' | 'ready' | 'delayed' | 'held' | 'leased'

/** What a queue reports to the record of the item that a message carries. */
export interface MessageOwner {
  /** Its time has come: it can be claimed. `freedFrom` is the hold that ended with it. */
  becameReady(message: Message, freedFrom: Hold | undefined): void
  /** Its lease ran out. */
  lapsed(message: Message): void
}

/** One lease of a message. Apart from the message, because of many that wait only a few are leased. */
export class MessageLease {
  readonly token: string
  /** The worker, where it said its name. */
  readonly holder: string | undefined
  /** What the last heartbeat said: its handler runs. */
  running = false
  /** It was counted as a start. */
  isStarted = false
  /** On the steady clock. */
  end: Ms
  /** Where it was filed among the leases; a heartbeat moves only `end`. */
  filedEnd: Ms
  /** The end in wall time, for people. */
  until: At
  /** Its queue finds it by token. */
  isIndexed = false

  constructor(token: string, holder: string | undefined, leaseMs: Ms, steady: Ms, now: At) {
    this.token = token
    this.holder = holder
    this.end = steady + leaseMs
    this.filedEnd = this.end
    this.until = now + leaseMs
  }
}

/**
 * One message of a queue: either a body that was pushed as text, or the envelope of an item, whose text is only made
 * when it is read.
 */
export class Message {
  /** Arrival: rises by one with every message, and names it in the journal. */
  readonly no: number
  /** The process that numbered it: numbers begin anew with every process. */
  origin = ''
  /** The id that it came back with. Otherwise its number tells it. */
  ownId: string | undefined = undefined
  /** The queue it is in. */
  queueName = ''
  #content: string | Envelope
  /** The type of the item that it carries. Undefined: no ledger has read it yet. */
  type: string | undefined
  /** When the item that it carries expires, if it does and a ledger has read it. */
  deadline: At | undefined
  /** Among the ready messages with a deadline. */
  deadlineSlot = NO_SLOT
  readonly dedupeKey: string | undefined
  priority: number
  /** Ready from then on; Infinity: only when its hold goes. */
  dueAt: At
  hold: Hold | undefined = undefined
  /** What its gate decided, once it has. */
  gate: GateDecision | undefined = undefined

  /** Leases of this try. */
  deliveries = 0
  /** Leases of the item, over all its tries: never falls. */
  fence = 0
  /** Leases that ran out. */
  lapses = 0
  /** Leases that ran out while their handler ran. */
  crashes = 0
  /** Deliveries that began to run, as far as a plain consumer counts them. */
  starts = 0
  /** What a plain consumer kept with it. */
  note: string | undefined = undefined

  place: Place = 'nowhere'
  slot = NO_SLOT
  /** Who has it, while it is leased. */
  lease: MessageLease | undefined = undefined

  owner: MessageOwner | undefined = undefined
  /** Among the messages that no ledger has read; see `Queues.unread`. */
  unreadSlot = NO_SLOT
  /** In bytes, where it carries a text. */
  weight = 0
  /** What it takes in the journal. */
  journaled = 0

  constructor(
    no: number,
    content: string | Envelope,
    dueAt: At,
    priority: number,
    dedupeKey: string | undefined = undefined,
  ) {
    this.no = no
    this.#content = content
    this.type = typeof content === 'string' ? undefined : content.type
    this.deadline = typeof content === 'string' ? undefined : content.deadline
    this.dueAt = dueAt
    this.priority = priority
    this.dedupeKey = dedupeKey
  }

  /** The same in every delivery and process, and never that of another message. */
  get id(): string {
    return this.ownId ?? `${this.origin}.${this.no}`
  }

  /** The text that a plain consumer gets: what was pushed, to the letter, or the envelope spelt out now. */
  get body(): string {
    // The text is not kept: an item would then be in memory twice.
    return typeof this.#content === 'string' ? this.#content : writeEnvelope(this.#content)
  }

  /** The text that it was pushed as. */
  get text(): string | undefined {
    return typeof this.#content === 'string' ? this.#content : undefined
  }

  /** The envelope that it carries; undefined: it is none. */
  read(): Envelope | undefined {
    return typeof this.#content === 'string' ? readEnvelope(this.#content) : this.#content
  }

  /** It carries this now: the next try of the same item. */
  carry(envelope: Envelope): void {
    this.#content = envelope
    this.type = envelope.type
    this.deadline = envelope.deadline
  }
}

/** The order of claim: priority descending, due time, arrival. */
export function isClaimedBefore(a: Message, b: Message): boolean {
  return a.priority === b.priority ? isDueBefore(a, b) : a.priority > b.priority
}

/** Order of claim within one priority: due time, then arrival. */
export function isDueBefore(a: Message, b: Message): boolean {
  return a.dueAt === b.dueAt ? a.no < b.no : a.dueAt < b.dueAt
}

/** Order of expiry: deadline, then arrival. Only of messages that have a deadline. */
export function isExpiredBefore(a: Message, b: Message): boolean {
  return a.deadline === b.deadline ? a.no < b.no : a.deadline! < b.deadline!
}
