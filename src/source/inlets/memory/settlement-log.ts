import type { Result } from '../../../core/stream/result.js'
import type { At } from '../../../core/time/time.js'
import { type Counts, messageOutcomeOf, noCounts } from '../../hopper/run-summary.js'

/** One settlement, as it was asked for. */
export interface LedgerEntry {
  /** The message's id, which is also its cursor. */
  readonly id: string
  readonly result: Result
  readonly atMs: At
  /** Which delivery of the message was settled, from 1. */
  readonly attempt: number
}

/** How many settlements there were of each kind. They exclude each other, and sum up to `length`. */
export type LedgerCounts = Readonly<Counts>

/**
 * How the messages of a {@link MemInlet} were settled, in order. What it returns are copies.
 *
 * @example
 * ```ts
 * inlet.ledger.counts() // { acked: 2, dropped: 0, nak: 1, term: 0, inProgress: 0, manual: 0 }
 * ```
 */
export class SettlementLog {
  readonly #entries: LedgerEntry[] = []

  get length(): number {
    return this.#entries.length
  }

  entries(): LedgerEntry[] {
    return [...this.#entries]
  }

  ids(): string[] {
    return this.#entries.map((entry) => entry.id)
  }

  counts(): LedgerCounts {
    const counts = noCounts()
    for (const { result } of this.#entries) counts[messageOutcomeOf(result)] += 1
    return counts
  }

  /** @internal */
  record(entry: LedgerEntry): void {
    this.#entries.push(Object.freeze(entry))
  }
}
