import type { At } from '../../core/time.js'
import type { Book } from './book.js'
import { cancelledElsewhere, resultWritten, stateWritten, tellGroupWatchers } from './elsewhere.js'
import { type GroupPart, groupText, setGroupText } from './group-text.js'
import type { ItemRecord } from './item-record.js'
import { stateText } from './item-text.js'
import type { KeyView, TextCount } from './key-space.js'
import type { Pausable } from './pauses.js'

type ItemPart = 'state' | 'result' | 'error' | 'heartbeat' | 'cancel' | 'progress'

/** Finds out whether a key, without its prefix, is a view of a record of this book. */
export function viewIn(book: Book, rest: string): KeyView | undefined {
  const colon = rest.indexOf(':')
  if (colon < 0) return rest === 'log' ? new LogKey(book) : undefined
  const name = rest.slice(colon + 1)
  switch (rest.slice(0, colon)) {
    case 'state':
      return new ItemKey(book, 'state', name)
    case 'result':
      return new ItemKey(book, 'result', name)
    case 'hb':
      return new ItemKey(book, 'heartbeat', name)
    case 'cancel':
      return new ItemKey(book, 'cancel', name)
    case 'progress':
      return new ItemKey(book, 'progress', name)
    case 'gate':
      return new GateKey(book, name)
    case 'item':
      return name.endsWith(':error') ? new ItemKey(book, 'error', name.slice(0, -6)) : undefined
    case 'group': {
      const last = name.lastIndexOf(':')
      const part = GROUP_PARTS.find((one) => one === name.slice(last + 1))
      return last < 0 || part === undefined ? undefined : new GroupKey(book, part, name.slice(0, last))
    }
    case 'pause': {
      const next = name.indexOf(':')
      const what = PAUSABLES.find((one) => one === name.slice(0, next))
      return what === undefined ? undefined : new PauseKey(book, what, name.slice(next + 1))
    }
    default:
      return undefined
  }
}

const GROUP_PARTS: readonly GroupPart[] = ['open', 'done', 'result', 'final']
const PAUSABLES: readonly Pausable[] = ['queue', 'type']

class ItemKey implements KeyView {
  readonly count: TextCount
  readonly #book: Book
  readonly #part: ItemPart
  readonly #id: string

  constructor(book: Book, part: ItemPart, id: string) {
    this.#book = book
    this.#part = part
    this.#id = id
    this.count = book.count
  }

  read(now: At): string | undefined {
    const record = this.#record(now)
    if (record === undefined) return undefined
    switch (this.#part) {
      case 'state':
        return stateText(record)
      case 'result':
        return record.result
      case 'error':
        return record.status === 'dead' ? record.extras?.error : undefined
      case 'heartbeat':
        return record.message?.lease?.heartbeatAt?.toString()
      case 'cancel':
        return record.extras?.cancelled
      case 'progress':
        return record.extras?.progress
    }
  }

  write(value: string | undefined, expiresAt: At, now: At): boolean {
    const record = this.#record(now)
    switch (this.#part) {
      case 'state':
        if (value === undefined) this.#deleteState(record, now)
        else stateWritten(this.#book, this.#id, record, value, expiresAt, now)
        return false
      case 'result':
        if (record !== undefined) {
          record.result = undefined
          this.#book.weigh(record)
        }
        if (value !== undefined) resultWritten(this.#book, this.#id, record, now)
        return false
      case 'error':
        if (record?.extras !== undefined) {
          record.withExtras().error = undefined
          this.#book.weigh(record)
        }
        return false
      case 'heartbeat':
        if (record?.message?.lease !== undefined) record.message.lease.heartbeatAt = undefined
        return false
      case 'cancel':
        if (record === undefined) return false
        cancelledElsewhere(this.#book, record, value)
        return true
      case 'progress':
        if (record === undefined) return false
        record.withExtras().progress = value
        this.#book.weigh(record)
        return true
    }
  }

  settled(): void {
    this.#book.shelf.settled()
  }

  add(): undefined {
    return undefined
  }

  #record(now: At): ItemRecord | undefined {
    const record = this.#book.known(this.#id)
    return record !== undefined && (record.keepUntil > now || record.message !== undefined) ? record : undefined
  }

  /** The other keys of the item are not deleted with its state: they stay as texts. */
  #deleteState(record: ItemRecord | undefined, now: At): void {
    if (record === undefined) return
    const { keys } = this.#book.shelf
    const { names } = this.#book
    const { result, status, keepUntil, message } = record
    const { error, cancelled } = record.extras ?? {}
    this.#book.remove(record)
    if (message !== undefined) this.#book.shelf.queues.markUnread(message)
    if (result !== undefined) keys.keepText(names.result(this.#id), result, keepUntil)
    if (status === 'dead' && error !== undefined) keys.keepText(names.error(this.#id), error, keepUntil)
    if (cancelled !== undefined) keys.keepText(names.cancel(this.#id), cancelled, Math.max(keepUntil, now))
  }
}

class GroupKey implements KeyView {
  readonly count: TextCount
  readonly #book: Book
  readonly #part: GroupPart
  readonly #id: string

  constructor(book: Book, part: GroupPart, id: string) {
    this.#book = book
    this.#part = part
    this.#id = id
    this.count = book.count
  }

  read(now: At): string | undefined {
    const group = this.#book.knownGroup(this.#id, now)
    return group === undefined ? undefined : groupText(group, this.#part)
  }

  write(value: string | undefined, expiresAt: At, now: At): boolean {
    const group = this.#book.knownGroup(this.#id, now)
    if (group === undefined) return false
    const wasOpen = group.done === undefined
    if (!setGroupText(group, this.#part, value)) return false
    this.#book.weigh(group)
    if (this.#part === 'done' && value === undefined) this.#book.keepGroup(group, Number.POSITIVE_INFINITY)
    if (this.#part === 'done' && value !== undefined) {
      this.#book.keepGroup(group, expiresAt)
      if (wasOpen) tellGroupWatchers(this.#book, group, now)
    }
    return true
  }

  settled(): void {
    this.#book.shelf.settled()
  }

  add(by: number, _expiresAt: At | undefined, now: At): number | undefined {
    const group = this.#part === 'open' ? this.#book.knownGroup(this.#id, now) : undefined
    if (group === undefined) return undefined
    group.open += by
    group.isCounted = true
    return group.open
  }
}

class PauseKey implements KeyView {
  readonly count: TextCount
  readonly #book: Book
  readonly #what: Pausable
  readonly #name: string

  constructor(book: Book, what: Pausable, name: string) {
    this.#book = book
    this.#what = what
    this.#name = name
    this.count = book.count
  }

  read(): string | undefined {
    return this.#book.pauses.text(this.#what, this.#name)
  }

  write(value: string | undefined, _expiresAt: At, now: At): boolean {
    if (value === undefined) this.#book.pauses.resume(this.#what, this.#name, now)
    else this.#book.pauses.pause(this.#what, this.#name, value)
    return true
  }

  settled(): void {
    this.#book.shelf.settled()
  }

  add(): undefined {
    return undefined
  }
}

/** A gate that has decided, for a system on the plain path that runs the item it held. Written, it is a text. */
class GateKey implements KeyView {
  readonly count: TextCount
  readonly #book: Book
  readonly #key: string

  constructor(book: Book, key: string) {
    this.#book = book
    this.#key = key
    this.count = book.count
  }

  read(): string | undefined {
    const decision = this.#book.gates.decision(this.#key)
    // Nobody left to wait for, and a need that is met or not: that is how a plain system reads a decision.
    return decision === undefined
      ? undefined
      : JSON.stringify({ holds: '', members: [], need: decision.met ? 0 : 1, of: 'done' })
  }

  write(): boolean {
    return false
  }

  settled(): void {}

  add(): undefined {
    return undefined
  }
}

/** What people did, the oldest first, as JSON. Nobody but the ledger writes it. */
class LogKey implements KeyView {
  readonly count: TextCount
  readonly #book: Book

  constructor(book: Book) {
    this.#book = book
    this.count = book.count
  }

  read(): string | undefined {
    const entries = this.#book.log.all()
    return entries.length === 0 ? undefined : JSON.stringify(entries)
  }

  write(): boolean {
    return false
  }

  settled(): void {}

  add(): undefined {
    return undefined
  }
}
