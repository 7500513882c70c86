import type { LogEntry } from '../../../ports/inspect.js'

const MAX_ENTRIES = 1_000

/** The last actions of people; the oldest leave first. */
export class ActionLog {
  readonly #entries: LogEntry[] = []

  add(entry: LogEntry): void {
    this.#entries.push(entry)
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift()
  }

  all(): readonly LogEntry[] {
    return [...this.#entries]
  }
}
