import type { At } from '../../core/time.js'
import { Bytes } from './bytes.js'
import { type DeadLettered, DeadLetters } from './dead-letters.js'
import { Fifo } from './fifo.js'
import type { GateRecord } from './gate-record.js'
import { Message } from './message.js'
import { MessageQueue } from './message-queue.js'
import type { QueueFile } from './queue-file.js'
import { nothingStored, type Stored, type StoredMessage, type StoredPause } from './stored.js'
import type { Time } from './time.js'

export interface QueuesOptions {
  readonly file: QueueFile | undefined
  readonly maxDead: number
  readonly onEvict: ((entry: DeadLettered) => void) | undefined
}

/** What else than messages belongs in the file: it decides which of them are held. */
export interface FiledRules {
  readonly gates: readonly { readonly prefix: string; readonly gate: GateRecord }[]
  readonly pauses: readonly StoredPause[]
}

/** The queues that share one numbering, one file and one commit. */
export class Queues {
  readonly file: QueueFile | undefined
  /** What is stored, here and in whatever shares this backend. */
  readonly bytes = new Bytes()
  /** Messages that came as text and that no ledger has looked into. */
  readonly unread = new Fifo<Message>((message, position) => {
    message.unreadSlot = position
  })
  /** Gates and pauses of the file whose prefix nobody has opened yet. */
  dormant: FiledRules = { gates: [], pauses: [] }
  /** Those of the open books. */
  rules: () => FiledRules = () => ({ gates: [], pauses: [] })
  readonly #options: QueuesOptions
  readonly #byName = new Map<string, MessageQueue>()
  #lastNo = 0
  readonly #nextNo = (): number => {
    this.#lastNo += 1
    return this.#lastNo
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
      const dead = new DeadLetters({ queue: name, max, onEvict, log, nextNo: this.#nextNo, bytes: this.bytes })
      queue = new MessageQueue(name, dead, this.#nextNo, log, this.bytes)
      this.#byName.set(name, queue)
    }
    return queue
  }

  all(): IterableIterator<MessageQueue> {
    return this.#byName.values()
  }

  /** Remembers that nobody knows yet what this message carries. */
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
    this.dormant = { gates: [...stored.gates.values()], pauses: [...stored.pauses.values()] }
    const gateKeys = new Set(this.dormant.gates.map(({ gate }) => gate.key))
    for (const one of [...stored.messages.values()].sort((a, b) => a.no - b.no)) {
      const message = restored(one, gateKeys, now)
      this.#lastNo = Math.max(this.#lastNo, one.no)
      this.named(one.queue).take(message, now)
      this.file?.restored(message)
    }
    for (const { no, queue, body, error } of stored.dead.values()) {
      this.#lastNo = Math.max(this.#lastNo, no)
      const entry = { body, error }
      this.named(queue).dead.restore(no, entry)
      this.file?.restoredDead(entry)
    }
  }

  #current(): Stored {
    const stored = nothingStored()
    for (const queue of this.#byName.values()) {
      const { name } = queue
      for (const message of queue.messages()) stored.messages.set(message.no, storedOf(name, message))
      for (const [no, { body, error }] of queue.dead.numbered()) stored.dead.set(no, { no, queue: name, body, error })
    }
    for (const { gates, pauses } of [this.dormant, this.rules()]) {
      for (const one of gates) stored.gates.set(`${one.prefix}\n${one.gate.key}`, one)
      for (const one of pauses) stored.pauses.set(`${one.prefix}\n${one.what}\n${one.name}`, one)
    }
    return stored
  }
}

/** Only a gate that was stored too can still free its item; every other hold ended with the process that knew of it. */
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
  return message
}

function storedOf(queue: string, message: Message): StoredMessage {
  const { no, body, dedupeKey, priority, dueAt, deliveries, fence, lapses, crashes, hold, gate } = message
  const lease = message.lease === undefined ? 'none' : message.lease.running ? 'running' : 'taken'
  return { no, queue, body, dedupeKey, priority, dueAt, deliveries, fence, lapses, crashes, lease, hold, gate }
}
