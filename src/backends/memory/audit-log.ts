import type { LogEntry } from '../../ports/ledger.js'

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
