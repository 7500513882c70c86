import { newToken } from '../../../core/ids.js'
import type { At } from '../../../core/time/time.js'
import type { QueueFile } from '../file/queue-file.js'
import { nothingStored, pauseKey, type Stored, type StoredMessage, type StoredPause } from '../file/queue-records.js'
import type { GateRecord } from '../groups/gate-table.js'
import { Bytes } from '../items/bytes.js'
import type { Time } from '../time.js'
import { type DeadLettered, DeadLetters } from './dead-letters.js'
import { Message } from './message.js'
import { MessageQueue } from './message-queue.js'
import { SlotList } from './slot-list.js'

export interface QueuesOptions {
  readonly file: QueueFile | undefined
  readonly maxDead: number
  readonly onEvict: ((entry: DeadLettered) => void) | undefined
}

/** What the file holds beside messages: it decides which of them are held. */
export interface FiledRules {
  readonly gates: readonly GateRecord[]
  readonly pauses: readonly StoredPause[]
}

/** The queues that share one numbering, one file and one commit. */
export class Queues {
  readonly file: QueueFile | undefined
  /** What is stored in the whole backend. */
  readonly bytes = new Bytes()
  /** Messages that came as text and that no ledger has read. */
  readonly unread = new SlotList<Message>((message, position) => {
    message.unreadSlot = position
  })
  /** Those of the file, until a ledger takes them over. */
  rules: () => FiledRules = () => ({ gates: [], pauses: [] })
  readonly #options: QueuesOptions
  readonly #byName = new Map<string, MessageQueue>()
  #lastNo = 0
  readonly #numbering = {
    origin: newToken(),
    next: (): number => {
      this.#lastNo += 1
      return this.#lastNo
    },
  }

  constructor(time: Time, options: QueuesOptions) {
    this.#options = options
    this.file = options.file
    if (this.file === undefined) return
    this.#restore(this.file.stored, time.wall())
    this.file.follow(() => this.#current())
  }

  /** The queue of this name; it begins to exist when it is first asked for. */
  named(name: string): MessageQueue {
    let queue = this.#byName.get(name)
    if (queue === undefined) {
      const { maxDead: max, onEvict, file: log } = this.#options
      const dead = new DeadLetters({ queue: name, max, onEvict, log, nextNo: this.#numbering.next, bytes: this.bytes })
      queue = new MessageQueue(name, dead, this.#numbering, log, this.bytes)
      this.#byName.set(name, queue)
    }
    return queue
  }

  all(): IterableIterator<MessageQueue> {
    return this.#byName.values()
  }

  /** Remembers that no ledger has read this message. */
  markUnread(message: Message): void {
    message.unreadSlot = this.unread.append(message)
  }

  markRead(message: Message): void {
    if (message.unreadSlot < 0) return
    const position = message.unreadSlot
    message.unreadSlot = -1
    this.unread.remove(position)
  }

  #restore(stored: Stored, now: At): void {
    const filed = { gates: [...stored.gates.values()], pauses: [...stored.pauses.values()] }
    this.rules = () => filed
    const gateKeys = new Set(stored.gates.keys())
    for (const one of [...stored.messages.values()].sort((a, b) => a.no - b.no)) {
      const message = restored(one, gateKeys, now)
      message.origin = one.origin ?? this.#numbering.origin
      this.#lastNo = Math.max(this.#lastNo, one.no)
      this.named(one.queue).take(message, now)
      this.file?.restored(message)
    }
    for (const { no, queue, body, error, letter } of stored.dead.values()) {
      this.#lastNo = Math.max(this.#lastNo, no)
      const entry = { body, error }
      this.named(queue).dead.restore(no, entry, body, letter)
      this.file?.restoredDead(entry)
    }
  }

  #current(): Stored {
    const stored = nothingStored()
    for (const queue of this.#byName.values()) {
      const { name } = queue
      for (const message of queue.messages()) stored.messages.set(message.no, storedOf(name, message))
      for (const [no, { body, error }, letter] of queue.dead.numbered())
        stored.dead.set(no, { no, queue: name, body, error, letter })
    }
    const { gates, pauses } = this.rules()
    for (const gate of gates) stored.gates.set(gate.key, gate)
    for (const pause of pauses) stored.pauses.set(pauseKey(pause.what, pause.name), pause)
    return stored
  }
}

/** Only a gate that was stored too can still free its item; every other hold ended with its process. */
function restored(stored: StoredMessage, gateKeys: ReadonlySet<string>, now: At): Message {
  const { hold } = stored
  const isHeld = hold?.by === 'gate' && gateKeys.has(hold.key) && stored.dueAt > now
  const dueAt = hold !== undefined && !isHeld && stored.dueAt === Number.POSITIVE_INFINITY ? now : stored.dueAt
  const message = new Message(stored.no, stored.body, dueAt, stored.priority, stored.dedupeKey)
  message.hold = isHeld ? hold : undefined
  message.gate = stored.gate
  message.deliveries = stored.deliveries
  message.fence = stored.fence
  message.lapses = stored.lapses
  message.crashes = stored.crashes
  message.ownId = stored.id
  message.starts = stored.starts
  message.note = stored.note
  return message
}

function storedOf(queue: string, message: Message): StoredMessage {
  const { no, origin, body, dedupeKey, priority, dueAt, deliveries, fence, lapses, crashes, hold, gate } = message
  const { starts, note, ownId } = message
  const lease = message.lease === undefined ? 'none' : message.lease.running ? 'running' : 'taken'
  return {
    ...{ no, origin, queue, body, dedupeKey, priority, dueAt, deliveries, fence, lapses, crashes, lease, hold, gate },
    ...{ id: ownId, starts, note },
  }
}
