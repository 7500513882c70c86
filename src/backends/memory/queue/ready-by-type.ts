import { Heap } from '../../../core/collections/heap.js'
import type { At } from '../../../core/time/time.js'
import { isClaimedBefore, isExpiredBefore, type Message } from './message.js'
import { ReadyIndex } from './ready-index.js'

/**
 * What can be claimed now, apart by type: a claim that has no room for a type never walks past its items, however many there
 * are. Types are few, so the first of several is found by comparing their heads.
 */
export class ReadyByType {
  /** Under `undefined`, messages that no ledger has read. */
  readonly #types = new Map<string | undefined, ReadyIndex>()
  /** Those that have a deadline, of whatever type. */
  readonly #deadlines = new Heap<Message>(isExpiredBefore, (message, slot) => {
    message.deadlineSlot = slot
  })

  add(message: Message): void {
    let index = this.#types.get(message.type)
    if (index === undefined) {
      index = new ReadyIndex()
      this.#types.set(message.type, index)
    }
    index.add(message)
    if (message.deadline !== undefined) this.#deadlines.push(message)
  }

  remove(message: Message): void {
    this.#types.get(message.type)?.remove(message)
    if (message.deadlineSlot >= 0) this.#deadlines.removeAt(message.deadlineSlot)
  }

  /** The first whose deadline has passed, of whatever type. */
  expired(now: At): Message | undefined {
    const first = this.#deadlines.peek()
    return first?.deadline !== undefined && now > first.deadline ? first : undefined
  }

  /** The first in the order of claim. With types: of those, and of messages that no ledger has read, since it may be one of them. */
  peek(types?: Iterable<string>): Message | undefined {
    let first: Message | undefined
    if (types === undefined) for (const index of this.#types.values()) first = earlier(first, index.peek())
    else {
      first = this.#types.get(undefined)?.peek()
      for (const type of types) first = earlier(first, this.#types.get(type)?.peek())
    }
    return first
  }

  /** In no particular order. */
  *values(): IterableIterator<Message> {
    for (const index of this.#types.values()) yield* index.values()
  }
}

function earlier(a: Message | undefined, b: Message | undefined): Message | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return isClaimedBefore(b, a) ? b : a
}
