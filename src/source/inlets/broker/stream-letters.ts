import type { FailureClass } from '../../../core/failure/failure.js'
import type { At } from '../../../core/time/time.js'
import type { Headers } from '../../message/headers.js'
import type { DeadLetterStore } from '../../middleware/dead-letter.js'

/** A dead letter in a stream of its own: the message as it was, and why it was given up. */
export interface StreamLetter {
  /** Its place in the stream of dead letters: what `redrive` and `discard` take. */
  readonly id: string
  /** The position of the message in the stream it came from. */
  readonly cursor: string
  readonly subject: string
  readonly class: FailureClass
  /** The text of the last error, `''` when there was none. */
  readonly error: string
  readonly errorName: string
  /** Deliveries that it took, where they are known. */
  readonly attempts: number | undefined
  readonly atMs: At
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers
}

/**
 * The dead letters of a stream, for people and tools; also a store for `dlq`. A letter of a message of the same inlet is written in the
 * step that settles the message, so there is never one too few or one too many.
 */
export interface StreamLetters extends DeadLetterStore {
  /** In the order in which they were given up. `limit`: 100 by default. */
  list(query?: { readonly after?: string; readonly limit?: number }): Promise<readonly StreamLetter[]>
  count(): Promise<number>
  /** Puts them back at the end of the stream, as new messages with their headers and key. Answers how many were still there. */
  redrive(ids: readonly string[]): Promise<number>
  /** Removes them. Answers how many were still there. */
  discard(ids: readonly string[]): Promise<number>
}

/** Where a stream stands, and what stops it. */
export interface StreamExplanation {
  readonly stream: string
  readonly group: string
  /** Published and never delivered to the group. */
  readonly waiting: number
  /** Delivered and not settled, those that were put back included. */
  readonly unsettled: number
  /** Put back: they wait to be delivered again. Undefined where the broker does not tell. */
  readonly putBack: number | undefined
  /** Who consumes, as the broker counts it. Undefined where it does not. */
  readonly consumers: number | undefined
  /** This inlet delivers nothing, because `pause` was called. */
  readonly isPaused: boolean
  /** How many dead letters there are, and for which reasons those of the last hundred are there. Undefined: none are kept. */
  readonly letters: { readonly count: number; readonly reasons: Readonly<Record<string, number>> } | undefined
  /** What keeps messages from being handled, in sentences, the most likely reason first. Empty: nothing does. */
  readonly because: readonly string[]
}

/** Of how many dead letters the reasons are counted. */
const LATEST_LETTERS = 100

export async function explainStream(
  facts: Omit<StreamExplanation, 'because' | 'letters'>,
  kept: StreamLetters | undefined,
): Promise<StreamExplanation> {
  const { stream, group, waiting, unsettled, putBack = 0, consumers, isPaused } = facts
  const letters =
    kept === undefined
      ? undefined
      : { count: await kept.count(), reasons: reasonsOf(await kept.list({ limit: LATEST_LETTERS })) }
  const because: string[] = []
  if (isPaused) because.push('This inlet is paused: call resume().')
  if (waiting + unsettled > 0 && consumers === 0)
    because.push(`Nothing consumes "${stream}" as "${group}": start a hopper on it.`)
  if (putBack > 0) because.push(`${putBack} failed and wait to be delivered again.`)
  if (letters !== undefined && letters.count > 0) {
    const reasons = Object.entries(letters.reasons).map(([reason, count]) => `${count} ${reason}`)
    because.push(`${letters.count} were given up (${reasons.join(', ')}): fix the cause, then redrive them.`)
  }
  return Object.freeze({ ...facts, letters, because })
}

/** How often each reason occurs. */
function reasonsOf(letters: readonly StreamLetter[]): Readonly<Record<string, number>> {
  const reasons: Record<string, number> = {}
  for (const { class: failureClass, errorName } of letters) {
    const reason = errorName === '' ? failureClass : `${failureClass}: ${errorName}`
    reasons[reason] = (reasons[reason] ?? 0) + 1
  }
  return reasons
}
