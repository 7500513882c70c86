import type { At } from '../../core/time.js'
import type { Book } from './book.js'
import { FLAG } from './group-record.js'
import { ItemRecord } from './item-record.js'
import type { Message } from './message.js'
import type { MessageQueue } from './message-queue.js'

/** So many items a resume, and each claim after it, gives their places back. */
const FREE_STEP = 1_000

export type Pausable = 'queue' | 'type'

interface Pause {
  readonly what: Pausable
  readonly name: string
  /** What stands under its key. */
  text: string
  /** What claims have met and set aside. Some of them may have left another way since. */
  readonly aside: Set<Message>
}

/** What is paused in a book. Items stay where they are until a claim meets them; a resume gives them their old place. */
export class Pauses {
  readonly #book: Book
  readonly #pauses = new Map<string, Pause>()
  /** What was set aside by pauses that have ended, and still stands aside. */
  readonly #leaving = new Map<string, Set<Message>>()

  constructor(book: Book) {
    this.#book = book
  }

  get areNone(): boolean {
    return this.#pauses.size === 0
  }

  all(): IterableIterator<{ readonly what: Pausable; readonly name: string }> {
    return this.#pauses.values()
  }

  text(what: Pausable, name: string): string | undefined {
    return this.#pauses.get(keyOf(what, name))?.text
  }

  pause(what: Pausable, name: string, text: string = FLAG): void {
    const found = this.#pauses.get(keyOf(what, name))
    if (found !== undefined) {
      found.text = text
      return
    }
    // Paused again before all were freed: the rest of them stay where they are.
    const aside = this.#leaving.get(keyOf(what, name)) ?? new Set()
    this.#leaving.delete(keyOf(what, name))
    this.#pauses.set(keyOf(what, name), { what, name, text, aside })
    this.#book.shelf.queues.file?.paused(this.#book.prefix, what, name, true)
  }

  /** A pause that is in the file already. */
  restore(what: Pausable, name: string): void {
    this.#pauses.set(keyOf(what, name), { what, name, text: FLAG, aside: new Set() })
  }

  resume(what: Pausable, name: string, now: At): void {
    const pause = this.#pauses.get(keyOf(what, name))
    if (pause === undefined) return
    const { queues, signals } = this.#book.shelf
    this.#pauses.delete(keyOf(what, name))
    queues.file?.paused(this.#book.prefix, what, name, false)
    this.#leaving.set(keyOf(what, name), pause.aside)
    this.free(now)
    // What no claim has met stands in its queue as before: whoever serves it has to look.
    for (const queue of queues.all()) if (what === 'type' || queue.name === name) signals.ready(queue, now, now)
  }

  /** Gives what stands aside without a pause its old place, at most so many at once. True: some are left. */
  free(now: At, max = FREE_STEP): boolean {
    if (this.#leaving.size === 0) return false
    const { queues, signals } = this.#book.shelf
    let freed = 0
    for (const [key, aside] of this.#leaving) {
      for (const message of aside) {
        if (freed >= max) return true
        freed += 1
        aside.delete(message)
        if (message.place !== 'held' || message.hold?.key !== key) continue
        const queue = queues.named(message.queueName)
        queue.refile(message, now, undefined, undefined)
        signals.ready(queue, message.dueAt, now)
        if (message.owner instanceof ItemRecord) message.owner.keeper.stateChanged(message.owner)
      }
      this.#leaving.delete(key)
    }
    return false
  }

  /** For whoever looks at items one by one: an item whose pause has ended must not look paused. */
  freeAll(now: At): void {
    if (this.#leaving.size === 0) return
    this.free(now, Number.POSITIVE_INFINITY)
    this.#book.shelf.settled()
  }

  /** Sets a ready message aside if its queue or its type is paused. */
  setAside(queue: MessageQueue, type: string, message: Message, now: At): boolean {
    const pause = this.#pauses.get(keyOf('queue', queue.name)) ?? this.#pauses.get(keyOf('type', type))
    if (pause === undefined) return false
    pause.aside.add(message)
    queue.refile(message, now, undefined, { by: 'pause', key: keyOf(pause.what, pause.name) })
    return true
  }
}

function keyOf(what: Pausable, name: string): string {
  return `${what}:${name}`
}
