import type { At } from '../../core/time.js'

/** Who did what, and why. */
export interface LogEntry {
  readonly at: At
  readonly who: string
  readonly why: string
  readonly what: string
}

const MAX_ENTRIES = 1_000

/** The last acts of people, the oldest leaving first. */
export class AuditLog {
  readonly #entries: LogEntry[] = []

  add(entry: LogEntry): void {
    this.#entries.push(entry)
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift()
  }

  all(): readonly LogEntry[] {
    return [...this.#entries]
  }
}
