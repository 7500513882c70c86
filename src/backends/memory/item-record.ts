import type { FailureClass } from '../../core/failure.js'
import type { At } from '../../core/time.js'
import type { Attempt, Ending, Envelope, Hold, Status } from '../../ports/item.js'
import type { DeadLettered } from './dead-letters.js'
import type { GroupRecord } from './group-record.js'
import { NO_SLOT } from './lane.js'
import type { Message, MessageOwner } from './message.js'
import type { MessageQueue } from './message-queue.js'
import {
  ACTIVE,
  BLOCKED,
  CANCELLED,
  COMPLETED,
  DEAD,
  type Facet,
  type Home,
  RETRYING,
  SCHEDULED,
  WAITING,
} from './state-index.js'

/** Who keeps records, as far as a record has to tell it something. */
export interface RecordKeeper {
  /** Its place among the states may have changed. */
  stateChanged(record: ItemRecord): void
  /** The time of a held item ran out before its gate decided. */
  gateTimedOut(key: string): void
  /** Its message was taken out of the queue by somebody else than the ledger. */
  acked(record: ItemRecord, now: At): void
}

/** What most items never have: failures, watchers, marks. Apart from the record, because there are many records. */
export class Extras {
  class: FailureClass | undefined = undefined
  error: string | undefined = undefined
  /** What it died of, where no run told. */
  fingerprint: string | undefined = undefined
  /** Why it is to be cancelled. */
  cancelled: string | undefined = undefined
  progress: string | undefined = undefined
  /** Who runs it, where a plain system does. */
  holder: string | undefined = undefined
  /** What its message had counted when the item ended. */
  lapses = 0
  crashes = 0
  watchers: string[] | undefined = undefined
  deadEntry: DeadLettered | undefined = undefined
  facets: Facet[] | undefined = undefined
}

/**
 * An item that is alone in its group is its group: no record is made for that until somebody else comes in. `leaving`: the
 * batch under way has taken it out, and may yet put others in.
 */
export type Lone = 'no' | 'open' | 'leaving' | 'closed'

/** How many runs of one item are remembered: one that is deferred for ever must not grow for ever. */
const MAX_ATTEMPTS = 100

/**
 * All that is known of one item. While it is open its message stands in a queue; once it has ended only this is left. The
 * texts that a plain store would hold are made from it when somebody reads their keys.
 */
export class ItemRecord implements MessageOwner {
  /** Without its input once the item has succeeded and the input was large. */
  envelope: Envelope
  status: Status = 'pending'
  message: Message | undefined = undefined
  lone: Lone = 'no'
  /** The value of the group that it is. */
  loneValue: string | undefined = undefined
  /** Its group, where it was at hand when the item came: its end finds it without a search. */
  group: GroupRecord | undefined = undefined
  fence = 0
  /** The token of the lease that settled it last: its commit, repeated, is recognised by it. */
  settledBy: string | undefined = undefined
  runAt: At | undefined = undefined
  endAt: At | undefined = undefined
  ending: Ending | undefined = undefined
  result: string | undefined = undefined
  /** One run, or several: nearly every item has one, and then there is no list. */
  #attempts: Attempt | Attempt[] | undefined = undefined
  #extras: Extras | undefined = undefined
  /** It was found in a queue or a store, not enqueued here: when its message goes it is not missed. */
  isFound = false
  hasInput = true

  keepUntil: At = Number.POSITIVE_INFINITY
  keepSlot = NO_SLOT
  /** In bytes, as it was counted last. */
  weight = 0
  endSlot = NO_SLOT
  awaitedUntil: At = 0
  readonly home: Home
  homeSlot = NO_SLOT
  state = WAITING
  entered = 0

  constructor(envelope: Envelope, home: Home) {
    this.envelope = envelope
    this.home = home
  }

  get id(): string {
    return this.envelope.id
  }

  get queue(): MessageQueue {
    return this.home.queue
  }

  get keeper(): RecordKeeper {
    return this.home.keeper
  }

  /** Who runs it. */
  get holder(): string | undefined {
    return this.message?.lease?.holder ?? this.#extras?.holder
  }

  /** What most items never have; undefined while there is none of it. */
  get extras(): Readonly<Extras> | undefined {
    return this.#extras
  }

  /** The same, to write into. */
  withExtras(): Extras {
    this.#extras ??= new Extras()
    return this.#extras
  }

  /** Begins anew: nothing remains of what its last life left behind, but its history, what it failed of and who watches it. */
  shedExtras(): void {
    const { watchers, facets, fingerprint } = this.#extras ?? {}
    this.#extras = undefined
    if (watchers !== undefined) this.withExtras().watchers = watchers
    if (facets !== undefined) this.withExtras().facets = facets
    if (fingerprint !== undefined) this.withExtras().fingerprint = fingerprint
  }

  get hasEnded(): boolean {
    return this.status === 'success' || this.status === 'dead'
  }

  attempts(): readonly Attempt[] {
    const attempts = this.#attempts
    if (attempts === undefined) return []
    return Array.isArray(attempts) ? attempts : [attempts]
  }

  get lastAttempt(): Attempt | undefined {
    return Array.isArray(this.#attempts) ? this.#attempts.at(-1) : this.#attempts
  }

  /** What it failed of last. */
  get fingerprint(): string | undefined {
    return this.#extras?.fingerprint ?? this.lastAttempt?.fingerprint
  }

  recordAttempt(was: Attempt): void {
    // From here on a run tells what it failed of, or that it did not.
    if (this.#extras?.fingerprint !== undefined) this.#extras.fingerprint = undefined
    if (this.#attempts === undefined) this.#attempts = was
    else if (!Array.isArray(this.#attempts)) this.#attempts = [this.#attempts, was]
    else {
      if (this.#attempts.length >= MAX_ATTEMPTS) this.#attempts.shift()
      this.#attempts.push(was)
    }
  }

  watch(inbox: string): void {
    const extras = this.withExtras()
    if (extras.watchers === undefined) extras.watchers = [inbox]
    else if (!extras.watchers.includes(inbox)) extras.watchers.push(inbox)
  }

  becameReady(message: Message, freedFrom: Hold | undefined): void {
    if (this.message !== message) return
    if (freedFrom?.by === 'gate') this.keeper.gateTimedOut(freedFrom.key)
    this.keeper.stateChanged(this)
  }

  lapsed(message: Message): void {
    if (this.message !== message) return
    this.backToPending()
    this.keeper.stateChanged(this)
  }

  backToPending(): void {
    this.status = 'pending'
    this.runAt = undefined
    if (this.#extras !== undefined) this.#extras.holder = undefined
  }
}

/** Where the item stands, in the words of `words.ts`; its message knows whether it is ready, delayed or held. */
export function stateOfRecord(record: ItemRecord): number {
  switch (record.status) {
    case 'running':
      return ACTIVE
    case 'success':
      return COMPLETED
    case 'dead':
      return record.ending === 'cancelled' ? CANCELLED : DEAD
    case 'pending': {
      const { message } = record
      if (message === undefined || message.place === 'ready' || message.place === 'leased') return WAITING
      if (message.hold !== undefined) return BLOCKED
      return record.envelope.attempt > 1 ? RETRYING : SCHEDULED
    }
  }
}
