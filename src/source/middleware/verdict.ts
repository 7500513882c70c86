import type { FailureClass } from '../../core/failure/failure.js'
import type { ResultOf } from '../../core/stream/result.js'
import { errorMessage, errorName } from '../../core/text/error-text.js'
import type { Message } from '../message/message.js'

/** What was decided about a message whose dead letter could not be stored yet. */
export interface KeptVerdict {
  readonly result: ResultOf<'term'>
  /** Deliveries it took to decide. */
  readonly attempts: number
  /** How often its dead letter could not be stored. */
  readonly failures: number
}

/** A verdict for a message without a note is remembered in this process, so many at most. */
const MOST_REMEMBERED = 10_000

/**
 * Keeps verdicts until they are carried out, so that a message which is given up is not run again because the dead letter
 * store is down. A verdict travels with its message where the subscription keeps notes; elsewhere this process remembers it.
 */
export class Verdicts {
  readonly #remembered = new Map<string, { readonly verdict: KeptVerdict; readonly delivery: number }>()

  of(message: Message): KeptVerdict | undefined {
    // As good as always.
    if (this.#remembered.size === 0) return readVerdict(message.note)
    const { verdict, delivery = 0 } = this.#remembered.get(keyOf(message)) ?? {}
    // Another process has dead-lettered it since, and a person has sent it back: its deliveries are counted from 1 again.
    const isAnew = verdict !== undefined && (message.deliveryCount ?? Infinity) <= delivery
    if (isAnew) this.forget(message)
    return isAnew ? readVerdict(message.note) : (verdict ?? readVerdict(message.note))
  }

  keep(message: Message, verdict: KeptVerdict): void {
    const key = keyOf(message)
    this.#remembered.delete(key)
    this.#remembered.set(key, { verdict, delivery: message.deliveryCount ?? 0 })
    if (this.#remembered.size > MOST_REMEMBERED) {
      const [oldest] = this.#remembered.keys()
      if (oldest !== undefined) this.#remembered.delete(oldest)
    }
  }

  forget(message: Message): void {
    if (this.#remembered.size > 0) this.#remembered.delete(keyOf(message))
  }
}

/** Its place in its stream: a header may be shared by two messages, of which one is good. */
function keyOf({ subject, partitionKey, cursor }: Message): string {
  return JSON.stringify([subject, partitionKey, cursor.toString()])
}

/** A verdict as the note of a nak. */
export function writeVerdict({ result, attempts, failures }: KeptVerdict): string {
  const error =
    result.error === undefined ? {} : { error: errorMessage(result.error), errorName: errorName(result.error) }
  return JSON.stringify({ verdict: result.class, attempts, failures, ...error })
}

/** Whether a note says that its message is given up, and only its dead letter is missing. */
export function isVerdict(note: string | undefined): boolean {
  return readVerdict(note) !== undefined
}

function readVerdict(note: string | undefined): KeptVerdict | undefined {
  if (note === undefined) return undefined
  try {
    const { verdict, attempts, failures, error, errorName: name } = JSON.parse(note) as Record<string, unknown>
    if (!isTerminal(verdict) || typeof attempts !== 'number' || typeof failures !== 'number') return undefined
    const result = { action: 'term', class: verdict, requeueMs: 0 } as const
    return {
      result: typeof error === 'string' ? { ...result, error: new KeptError(error, String(name)) } : result,
      attempts,
      failures,
    }
  } catch {
    // The note of other middleware.
    return undefined
  }
}

function isTerminal(word: unknown): word is ResultOf<'term'>['class'] {
  return TERMINAL.some((one) => one === word)
}

const TERMINAL: readonly FailureClass[] = ['poison', 'invalidForState', 'retryable']

/** The error of a verdict that another process reached. */
class KeptError extends Error {
  constructor(message: string, name: string) {
    super(message)
    this.name = name
  }
}
