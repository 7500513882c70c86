import type { At } from '../../../core/time/time.js'
import { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'
import type { Message } from '../queue/message.js'
import type { MessageQueue } from '../queue/message-queue.js'

/** A resume, and each claim after it, puts at most this many items back into their places. */
const FREE_STEP = 1_000

export type Pausable = 'queue' | 'type'

interface Pause {
  readonly what: Pausable
  readonly name: string
  /** What claims have found and held. Some of it may have left another way since. */
  readonly held: Set<Message>
}

/** What is paused. Items stay where they are until a claim finds and holds them; a resume puts them back into their places. */
export class Pauses {
  readonly #table: ItemTable
  readonly #pauses = new Map<string, Pause>()
  /** What pauses that have ended still hold. */
  readonly #resuming = new Map<string, Set<Message>>()

  constructor(table: ItemTable) {
    this.#table = table
  }

  get areNone(): boolean {
    return this.#pauses.size === 0
  }

  all(): IterableIterator<{ readonly what: Pausable; readonly name: string }> {
    return this.#pauses.values()
  }

  pause(what: Pausable, name: string): void {
    const key = keyOf(what, name)
    if (this.#pauses.has(key)) return
    // Paused again before all were freed: the rest of them stay where they are.
    const held = this.#resuming.get(key) ?? new Set()
    this.#resuming.delete(key)
    this.#pauses.set(key, { what, name, held })
    this.#table.context.queues.file?.paused(what, name, true)
  }

  /** A pause that is in the file already. */
  restore(what: Pausable, name: string): void {
    this.#pauses.set(keyOf(what, name), { what, name, held: new Set() })
  }

  resume(what: Pausable, name: string, now: At): void {
    const pause = this.#pauses.get(keyOf(what, name))
    if (pause === undefined) return
    const { queues, notifier } = this.#table.context
    this.#pauses.delete(keyOf(what, name))
    queues.file?.paused(what, name, false)
    this.#resuming.set(keyOf(what, name), pause.held)
    this.free(now)
    // What no claim has found is in its queue as before: its workers have to claim again.
    for (const queue of queues.all()) if (what === 'type' || queue.name === name) notifier.ready(queue, now, now)
  }

  /** Puts at most this many items that no pause holds any more back into their places. True: some are left. */
  free(now: At, max = FREE_STEP): boolean {
    if (this.#resuming.size === 0) return false
    const { queues, notifier } = this.#table.context
    let freed = 0
    for (const [key, held] of this.#resuming) {
      for (const message of held) {
        if (freed >= max) return true
        freed += 1
        held.delete(message)
        if (message.place !== 'held' || message.hold?.key !== key) continue
        const queue = queues.named(message.queueName)
        queue.refile(message, now, undefined, undefined)
        notifier.ready(queue, message.dueAt, now)
        if (message.owner instanceof ItemRecord) message.owner.keeper.stateChanged(message.owner)
      }
      this.#resuming.delete(key)
    }
    return false
  }

  /** For readers of single items: an item whose pause has ended must not look paused. */
  freeAll(now: At): void {
    if (this.#resuming.size === 0) return
    this.free(now, Number.POSITIVE_INFINITY)
    this.#table.context.settled()
  }

  /** Holds a ready message if its queue or its type is paused. */
  hold(queue: MessageQueue, type: string, message: Message, now: At): boolean {
    const pause = this.#pauses.get(keyOf('queue', queue.name)) ?? this.#pauses.get(keyOf('type', type))
    if (pause === undefined) return false
    pause.held.add(message)
    queue.refile(message, now, undefined, { by: 'pause', key: keyOf(pause.what, pause.name) })
    return true
  }
}

function keyOf(what: Pausable, name: string): string {
  return `${what}:${name}`
}
