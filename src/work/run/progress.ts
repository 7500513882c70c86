import { MillraceError, type WithCause } from '../../core/error.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { EngineContext } from '../engine-context.js'

/** All the progress of a process is sent together, no more often than this. */
const EVERY_MS: Ms = 1_000
/** The most that is sent to a backend that has no lower limit. */
const LARGEST_BYTES = 1_048_576

/** The progress that a handler reported cannot be sent. */
class ProgressError extends MillraceError {
  constructor(
    code: 'TOO_LARGE' | 'ENCODE_FAILED',
    id: string,
    problem: string,
    options: WithCause & { limit?: number } = {},
  ) {
    const { limit, ...rest } = options
    super(code, `ctx.progress of ${id}: ${problem}. Report a short summary, and store the rest elsewhere.`, {
      ...rest,
      facts: { id, limit },
    })
  }
}

export interface ProgressReporterOptions {
  readonly context: EngineContext
  /** Sends what is new, with a heartbeat. */
  readonly send: (progress: ReadonlyMap<Delivery<ClaimedItem>, string>) => Promise<void>
  readonly isSettling: (delivery: Delivery<ClaimedItem>) => boolean
}

/**
 * Sends the progress that handlers report. The latest value of each run counts. The first is sent immediately; those of all runs
 * that follow within a second are sent together.
 */
export class ProgressReporter {
  readonly #o: ProgressReporterOptions
  readonly #maxBytes: number
  #unsent = new Map<Delivery<ClaimedItem>, string>()
  /** The last send was less than a second ago. */
  #isResting = false

  constructor(options: ProgressReporterOptions) {
    this.#o = options
    this.#maxBytes = Math.min(LARGEST_BYTES, options.context.ledger.limits.maxItemBytes)
  }

  report(delivery: Delivery<ClaimedItem>, value: unknown): void {
    // Progress of a run that has lost its lease, or is over, is ignored.
    if (delivery.state !== 'held' || this.#o.isSettling(delivery)) return
    this.#unsent.set(delivery, this.#text(delivery, value))
    if (this.#isResting) return
    this.#isResting = true
    queueMicrotask(() => this.#send())
  }

  #text({ item }: Delivery<ClaimedItem>, value: unknown): string {
    const { id, type } = item.envelope
    const { registry, o } = this.#o.context
    let text: unknown
    try {
      text = registry.codecOf(type, o.codec).stringify(value)
    } catch (cause) {
      throw new ProgressError('ENCODE_FAILED', id, `it could not be encoded (${String(cause)})`, { cause })
    }
    if (typeof text !== 'string') throw new ProgressError('ENCODE_FAILED', id, 'its codec did not return a string')
    const bytes = Buffer.byteLength(text)
    if (bytes > this.#maxBytes) {
      throw new ProgressError('TOO_LARGE', id, `${bytes} bytes are more than ${this.#maxBytes}`, {
        limit: this.#maxBytes,
      })
    }
    return text
  }

  #send(): void {
    const { o, failed } = this.#o.context
    const unsent = this.#unsent
    this.#unsent = new Map()
    for (const delivery of unsent.keys()) {
      if (delivery.state !== 'held' || this.#o.isSettling(delivery)) unsent.delete(delivery)
    }
    // What fails is not sent again: the next report is newer, and the next heartbeat notices a lost lease.
    if (unsent.size > 0) this.#o.send(unsent).catch((error) => failed(error, 'queue'))
    o.clock.after(EVERY_MS, () => {
      if (this.#unsent.size > 0) this.#send()
      else this.#isResting = false
    })
  }
}
