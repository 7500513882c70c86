import type { At, Ms } from '../../src/core/time/time.js'
import type { PushOptions } from '../../src/ports/ports.js'

interface Entry {
  readonly body: string
  readonly priority: number
  readonly dedupeKey: string | undefined
  readonly arrival: number
  dueAt: At
  attempt: number
  lease: { readonly handle: number; until: At } | undefined
}

/** A queue in its simplest form: one array, full scans. What a real queue does is compared with it. */
export class QueueModel {
  #entries: Entry[] = []
  #arrivals = 0
  #handles = 0
  readonly #now: () => At

  constructor(now: () => At) {
    this.#now = now
  }

  get size(): number {
    return this.#entries.length
  }

  push(body: string, { delay = 0, dedupeKey, priority = 0 }: PushOptions = {}): void {
    if (dedupeKey !== undefined && this.#entries.some((entry) => entry.dedupeKey === dedupeKey)) return
    this.#arrivals += 1
    const dueAt = this.#now() + delay
    this.#entries.push({ body, priority, dedupeKey, arrival: this.#arrivals, dueAt, attempt: 1, lease: undefined })
  }

  pop(max: number, visibility: Ms): { readonly body: string; readonly handle: number; readonly attempt: number }[] {
    const now = this.#now()
    for (const entry of this.#entries) if (entry.lease !== undefined && entry.lease.until <= now) this.#free(entry)
    return this.#entries
      .filter((entry) => entry.lease === undefined && entry.dueAt <= now)
      .toSorted((a, b) => b.priority - a.priority || a.dueAt - b.dueAt || a.arrival - b.arrival)
      .slice(0, max)
      .map((entry) => {
        this.#handles += 1
        entry.lease = { handle: this.#handles, until: now + visibility }
        return { body: entry.body, handle: this.#handles, attempt: entry.attempt }
      })
  }

  heartbeat(handle: number, visibility: Ms): boolean {
    const entry = this.#heldBy(handle)
    if (entry?.lease !== undefined) entry.lease.until = this.#now() + visibility
    return entry !== undefined
  }

  ack(handle: number): void {
    this.#entries = this.#entries.filter((entry) => entry.lease?.handle !== handle)
  }

  fail(handle: number, delay = 0): void {
    const entry = this.#heldBy(handle)
    if (entry === undefined) return
    this.#free(entry)
    if (delay > 0) entry.dueAt = this.#now() + delay
  }

  #heldBy(handle: number): Entry | undefined {
    return this.#entries.find((entry) => entry.lease?.handle === handle)
  }

  #free(entry: Entry): void {
    entry.lease = undefined
    entry.attempt += 1
  }
}
