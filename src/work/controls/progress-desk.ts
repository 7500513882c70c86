import type { Clock } from '../../core/clock.js'
import type { JsonCodec } from '../../core/codec.js'
import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import type { Claimed } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'

/** All the progress of a process is sent together, no more often than this. */
const EVERY_MS: Ms = 1_000
/** What a backend without a limit of its own takes at most. */
const LARGEST_BYTES = 1_048_576

/** The progress that a handler told cannot be sent as it is. */
export class ProgressError extends MillraceError {
  constructor(
    code: 'TOO_LARGE' | 'ENCODE_FAILED',
    id: string,
    problem: string,
    options: ErrorOptions & { limit?: number } = {},
  ) {
    const { limit, ...rest } = options
    super(code, `ctx.progress of ${id}: ${problem}. Tell a short summary, and keep the rest where it belongs.`, {
      ...rest,
      facts: { id, limit },
    })
  }
}

export interface ProgressDeskOptions {
  readonly clock: Clock
  readonly maxBytes: number
  readonly codecOf: (type: string) => JsonCodec
  /** Sends what is new: a heartbeat that carries it. */
  readonly send: (progress: ReadonlyMap<Delivery<Claimed>, string>) => Promise<void>
  readonly isSettling: (delivery: Delivery<Claimed>) => boolean
  readonly onError: (error: unknown) => void
}

/**
 * Carries what handlers tell of their progress. The last word of each run counts; the first is sent at once, and those that
 * follow within a second go together, however many runs tell how much.
 */
export class ProgressDesk {
  readonly #o: ProgressDeskOptions
  readonly #maxBytes: number
  #unsent = new Map<Delivery<Claimed>, string>()
  /** A send was less than a moment ago, or is under way. */
  #isResting = false

  constructor(options: ProgressDeskOptions) {
    this.#o = options
    this.#maxBytes = Math.min(LARGEST_BYTES, options.maxBytes)
  }

  tell(delivery: Delivery<Claimed>, value: unknown): void {
    // A run that has lost its lease, or is over, has nothing more to say.
    if (delivery.state !== 'held' || this.#o.isSettling(delivery)) return
    this.#unsent.set(delivery, this.#text(delivery, value))
    if (this.#isResting) return
    this.#isResting = true
    queueMicrotask(() => this.#send())
  }

  #text({ item }: Delivery<Claimed>, value: unknown): string {
    const { id, type } = item.envelope
    let text: unknown
    try {
      text = this.#o.codecOf(type).stringify(value)
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
    const unsent = this.#unsent
    this.#unsent = new Map()
    for (const delivery of unsent.keys()) {
      if (delivery.state !== 'held' || this.#o.isSettling(delivery)) unsent.delete(delivery)
    }
    // What fails is not sent again: the next word of the run says more, and the next heartbeat tells of a lost lease.
    if (unsent.size > 0) this.#o.send(unsent).catch(this.#o.onError)
    this.#o.clock.after(EVERY_MS, () => {
      if (this.#unsent.size > 0) this.#send()
      else this.#isResting = false
    })
  }
}
