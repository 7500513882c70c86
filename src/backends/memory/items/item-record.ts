import type { FailureClass } from '../../../core/failure/failure.js'
import type { At } from '../../../core/time/time.js'
import type { Attempt, Ending, Envelope, Hold, ItemStatus } from '../../../ports/item.js'
import { ATTEMPTS_KEPT } from '../../../ports/limits.js'
import { hasEnded } from '../../../ports/words.js'
import type { GroupRecord } from '../groups/group-table.js'
import type { DeadLettered } from '../queue/dead-letters.js'
import type { Message, MessageOwner } from '../queue/message.js'
import type { MessageQueue } from '../queue/message-queue.js'
import { NO_SLOT } from '../queue/time-list.js'
import {
  ACTIVE,
  BLOCKED,
  CANCELLED,
  COMPLETED,
  DEAD,
  type ListEntry,
  type QueueType,
  RETRYING,
  SCHEDULED,
  WAITING,
} from './state-index.js'

/** What a record notifies its table of. */
export interface RecordKeeper {
  /** The item may be in another state. */
  stateChanged(record: ItemRecord): void
  /** The time of a held item ran out before its gate decided. */
  gateTimedOut(key: string): void
}

/** What most items never have: failures, watchers, marks. Apart from the record, because there are many records. */
export class Extras {
  class: FailureClass | undefined = undefined
  error: string | undefined = undefined
  /** What it died of, where no run failed. */
  fingerprint: string | undefined = undefined
  /** Why it is being cancelled. */
  cancelled: string | undefined = undefined
  progress: string | undefined = undefined
  /** What its message had counted when the item ended. */
  lapses = 0
  crashes = 0
  watchers: string[] | undefined = undefined
  deadEntry: DeadLettered | undefined = undefined
  entries: ListEntry[] | undefined = undefined
}

/**
 * Whether an item is the only member of its group and the group has no record. That saves a record for most items (see
 * bench/memory-ledger.bench.ts), until another item joins. `closing`: the current batch has taken the item out, and may yet add others.
 */
export type Single = 'no' | 'open' | 'closing' | 'closed'

/** All that is stored of one item. While it is open its message is in a queue; once it has ended only this is left. */
export class ItemRecord implements MessageOwner {
  /** Without its input once the item has completed, if the input was large. */
  envelope: Envelope
  status: ItemStatus = 'pending'
  message: Message | undefined = undefined
  single: Single = 'no'
  /** The value of the group that has no record. */
  singleValue: string | undefined = undefined
  /** Its group, if it was at hand when the item was enqueued: its end finds it without a lookup. */
  group: GroupRecord | undefined = undefined
  fence = 0
  /** The token of the lease that settled it last: its commit, repeated, is recognised by it. */
  settledToken: string | undefined = undefined
  runAt: At | undefined = undefined
  endAt: At | undefined = undefined
  ending: Ending | undefined = undefined
  result: string | undefined = undefined
  /** One run, or several: nearly every item has one, and then there is no list. */
  #attempts: Attempt | Attempt[] | undefined = undefined
  #extras: Extras | undefined = undefined
  hasInput = true

  keepUntil: At = Number.POSITIVE_INFINITY
  keepSlot = NO_SLOT
  /** In bytes, as it was counted last. */
  weight = 0
  endSlot = NO_SLOT
  awaitedUntil: At = 0
  readonly queueType: QueueType
  listSlot = NO_SLOT
  state = WAITING
  entered = 0

  constructor(envelope: Envelope, queueType: QueueType) {
    this.envelope = envelope
    this.queueType = queueType
  }

  get id(): string {
    return this.envelope.id
  }

  get queue(): MessageQueue {
    return this.queueType.queue
  }

  get keeper(): RecordKeeper {
    return this.queueType.keeper
  }

  /** The worker that runs it. */
  get worker(): string | undefined {
    return this.message?.lease?.holder
  }

  get leaseToken(): string | undefined {
    return this.message?.lease?.token
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

  /** A redrive: only its fingerprint, its watchers and the lists that it is in remain. */
  shedExtras(): void {
    const { watchers, entries, fingerprint } = this.#extras ?? {}
    this.#extras = undefined
    if (watchers !== undefined) this.withExtras().watchers = watchers
    if (entries !== undefined) this.withExtras().entries = entries
    if (fingerprint !== undefined) this.withExtras().fingerprint = fingerprint
  }

  get hasEnded(): boolean {
    return hasEnded(this.status)
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
    // From here on the fingerprint is that of the run.
    if (this.#extras?.fingerprint !== undefined) this.#extras.fingerprint = undefined
    if (this.#attempts === undefined) this.#attempts = was
    else if (!Array.isArray(this.#attempts)) this.#attempts = [this.#attempts, was]
    else {
      if (this.#attempts.length >= ATTEMPTS_KEPT) this.#attempts.shift()
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
  }
}

/** The state of the item; its message knows whether it is ready, delayed or held. */
export function stateOfRecord(record: ItemRecord): number {
  switch (record.status) {
    case 'running':
      return ACTIVE
    case 'completed':
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
