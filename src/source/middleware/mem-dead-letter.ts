import type { Result } from '../../core/stream/result.js'
import { DrainedError } from '../../core/stream/stream-errors.js'
import type { Capabilities, CapabilityName, Inlet, Subscription } from '../inlets/subscription.js'
import { AttemptHeader, type Context } from '../message/context.js'
import { Headers } from '../message/headers.js'
import type { Message, VendorToken } from '../message/message.js'
import { type DeadLetterRecord, type DeadLetterStore, deadLetteredMessageKey, deadLetterToken } from './dead-letter.js'

interface Letter {
  record: DeadLetterRecord
  /** Handed to a replay and not settled yet. */
  isOut: boolean
}

/**
 * Dead letters in memory. It is itself an inlet: subscribing replays what is dead-lettered at that moment, once, in the
 * order in which they were added, and then drains. A record leaves only when its replay is acknowledged; a replay that fails, or is cut off,
 * leaves it where it was. When the replay's own dlq dead-letters it again, its record is replaced.
 *
 * @example
 * ```ts
 * const letters = new MemDeadLetter()
 * await new Hopper({ middleware: [dlq(letters)] }).receive(letters, { topics: [] }, handler)
 * console.log(letters.size, 'are left')
 * ```
 */
export class MemDeadLetter implements DeadLetterStore, Inlet {
  readonly capabilities: ReadonlySet<CapabilityName> = new Set<CapabilityName>(['identity'])
  readonly #letters = new Set<Letter>()
  /** What replays have out, by the record they were given: no other caller can have that very object. */
  readonly #out = new Map<DeadLetterRecord, Letter>()
  #replays = 0

  /** How many are dead-lettered, those in a replay included. */
  get size(): number {
    return this.#letters.size
  }

  /** The records, oldest first. */
  records(): readonly DeadLetterRecord[] {
    return [...this.#letters].map((letter) => letter.record)
  }

  async deadLetter(ctx: Context, record: DeadLetterRecord): Promise<void> {
    const replayOf = ctx.get(deadLetteredMessageKey)?.as(deadLetterToken)
    const letter = replayOf === undefined ? undefined : this.#out.get(replayOf)
    if (letter === undefined) this.#letters.add({ record, isOut: false })
    // The cursor of a replay means nothing in the stream that the message came from.
    else letter.record = Object.freeze({ ...record, cursor: letter.record.cursor })
  }

  async subscribe(): Promise<Subscription> {
    const waiting = [...this.#letters]
    const out = new Map<Message, Letter>()
    const giveBack = (message: Message, letter: Letter) => {
      letter.isOut = false
      out.delete(message)
      this.#out.delete(message.as(deadLetterToken)!) // It was made here, so it has one.
    }
    return {
      next: async ({ signal }) => {
        signal.throwIfAborted()
        let letter = waiting.shift()
        // Another replay may have it, or have finished with it.
        while (letter !== undefined && (letter.isOut || !this.#letters.has(letter))) letter = waiting.shift()
        if (letter === undefined) throw new DrainedError()
        this.#replays += 1
        const message = replayed(letter.record, this.#replays)
        letter.isOut = true
        out.set(message, letter)
        this.#out.set(letter.record, letter)
        return message
      },
      settle: async (message: Message, result: Result) => {
        const letter = out.get(message)
        if (letter === undefined) return
        const wasReplaced = letter.record !== message.as(deadLetterToken)
        giveBack(message, letter)
        // Dead-lettered, but not here: it has moved to another store, and keeping it as well would make two of it.
        const hasMoved = result.action === 'term' && result.deadLettered === true && !wasReplaced
        if (result.action === 'ack' || hasMoved) this.#letters.delete(letter)
      },
      close: async () => {
        for (const [message, letter] of out) giveBack(message, letter)
      },
      // A replay is known by the cursor of the message that was dead-lettered; and no name but this one is asked for with its type.
      capability: <K extends CapabilityName>(name: K): Capabilities[K] | undefined =>
        name === 'identity' ? (true as Capabilities[K]) : undefined,
    }
  }

  /** Holds nothing that would have to be closed. */
  async close(): Promise<void> {}
}

/** A dead-lettered message on its way again: its attempts start over. */
function replayed(record: DeadLetterRecord, n: number): Message {
  return {
    key: record.key === null ? null : new Uint8Array(record.key),
    value: new Uint8Array(record.value),
    headers: new Headers(record.headers).without(AttemptHeader),
    subject: record.subject,
    partitionKey: record.partitionKey,
    cursor: { toString: () => `dlq-replay-${n}` },
    // The token is the same object, so the type is that of its record.
    as: <T>(token: VendorToken<T>) => (token === (deadLetterToken as unknown) ? (record as T) : undefined),
  }
}
