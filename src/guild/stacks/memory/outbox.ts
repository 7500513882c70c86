import type { Clock } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import type { CursorMove, Outbox, OutboxEntry, WatcherState } from '../backend.js'
import { type BookRef, bookKey } from '../documents/names.js'
import { privateCopy } from '../documents/value.js'
import { WatcherTakenError } from '../errors.js'
import type { MemorySpace, WatcherRow } from './space.js'

/** Events for durable watchers, for as long as the process lives. */
export class MemoryOutbox implements Outbox {
  readonly #space: MemorySpace
  readonly #clock: Clock

  constructor(space: MemorySpace, clock: Clock) {
    this.#space = space
    this.#clock = clock
  }

  async register(name: string, ref: BookRef): Promise<void> {
    const known = this.#space.watchers.get(name)
    if (known === undefined)
      this.#space.watchers.set(name, { ref, cursor: this.#space.lastSeq, holder: null, until: 0 })
    else if (bookKey(known.ref) !== bookKey(ref)) throw new WatcherTakenError(name, known.ref)
  }

  async forget(name: string): Promise<void> {
    this.#space.watchers.delete(name)
    this.#sweep()
  }

  async list(): Promise<WatcherState[]> {
    return [...this.#space.watchers].map(([name, row]) => ({
      name,
      ...row.ref,
      behind: this.#waiting(row).length,
      holder: row.until > this.#clock.now() ? row.holder : null,
    }))
  }

  async claim(name: string, holder: string, leaseMs: Ms): Promise<{ readonly cursor: number } | null> {
    const row = this.#space.watchers.get(name)
    const now = this.#clock.now()
    if (row === undefined || (row.holder !== null && row.holder !== holder && row.until > now)) return null
    row.holder = holder
    row.until = now + leaseMs
    return { cursor: row.cursor }
  }

  async renew(name: string, holder: string, leaseMs: Ms): Promise<boolean> {
    const row = this.#space.watchers.get(name)
    const now = this.#clock.now()
    if (row === undefined || row.holder !== holder || row.until <= now) return false
    row.until = now + leaseMs
    return true
  }

  async isBehind(name: string): Promise<boolean> {
    const row = this.#space.watchers.get(name)
    return row !== undefined && this.#waiting(row).length > 0
  }

  async read(name: string, cursor: number, max: number): Promise<OutboxEntry[]> {
    const row = this.#space.watchers.get(name)
    if (row === undefined) return []
    const later = this.#space.outbox.filter(({ seq, event }) => seq > cursor && bookKey(event) === bookKey(row.ref))
    return later.slice(0, max).map(privateCopy)
  }

  async advance(name: string, holder: string, { from, to }: CursorMove, keep: boolean): Promise<boolean> {
    const row = this.#space.watchers.get(name)
    if (row === undefined || row.holder !== holder || row.cursor !== from) return false
    row.cursor = to
    if (!keep) row.holder = null
    this.#sweep()
    return true
  }

  onAppend(wake: () => void): () => void {
    const one = { wake }
    this.#space.listeners.add(one)
    return () => void this.#space.listeners.delete(one)
  }

  #waiting(row: WatcherRow): OutboxEntry[] {
    return this.#space.outbox.filter(({ seq, event }) => seq > row.cursor && bookKey(event) === bookKey(row.ref))
  }

  /** Removes events that every watcher of their book has had. */
  #sweep(): void {
    const least = new Map<string, number>()
    for (const { ref, cursor } of this.#space.watchers.values()) {
      const key = bookKey(ref)
      least.set(key, Math.min(least.get(key) ?? Infinity, cursor))
    }
    this.#space.outbox = this.#space.outbox.filter(({ seq, event }) => seq > (least.get(bookKey(event)) ?? Infinity))
  }
}
