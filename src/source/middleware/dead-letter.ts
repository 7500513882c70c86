import { classLabel, type FailureClass } from '../../core/failure/failure.js'
import { OptionTypeError } from '../../core/options.js'
import { callable, clock, flag, number, readOptions } from '../../core/read-options.js'
import { doublingDelay, MAX_DELAY_MS } from '../../core/retry/backoff.js'
import { nakAfter, type Result, type ResultOf } from '../../core/stream/result.js'
import { errorMessage, errorName, errorText } from '../../core/text/error-text.js'
import type { Clock, Random } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import { parseAttempt } from '../message/attempt.js'
import { AttemptHeader, attempt, type Context, type ContextKey, contextKey } from '../message/context.js'
import type { Header } from '../message/headers.js'
import { type Message, type VendorToken, vendorToken } from '../message/message.js'
import { type Before, defineMiddleware } from './define-middleware.js'
import type { Middleware } from './handler.js'
import { clockIn, hostKey } from './middleware-host.js'
import { type KeptVerdict, Verdicts, writeVerdict } from './verdict.js'

/** A message that was dead-lettered, with everything that is needed to understand it and to run it again. */
export interface DeadLetterRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: readonly Header[]
  readonly subject: string
  /** The original one, so that a replay runs in the same lane. */
  readonly partitionKey: string
  readonly class: FailureClass
  /** The label of the class: `poison`, `invalid_for_state`, `retryable` (gave up). */
  readonly reason: string
  /** Deliveries it took. */
  readonly attempts: number
  /** The text of the last error, `''` when there was none. */
  readonly lastError: string
  /** The name of the last error's class, `''` when there was none. */
  readonly errorName: string
  readonly cursor: string
  readonly deadLetteredAtMs: At
  /** The hopper that gave it up. */
  readonly source: string
}

/** Where dead letters are kept. */
export interface DeadLetterStore {
  /** Resolves when the record is durable. Called again for the same message if that failed, or if its settlement did. */
  deadLetter(ctx: Context, record: DeadLetterRecord): Promise<void>
}

/** Gives the record behind a replayed message: `message.as(deadLetterToken)`. Every store that can replay answers to it. */
export const deadLetterToken: VendorToken<DeadLetterRecord> = vendorToken<DeadLetterRecord>('dead letter')

/**
 * Under which `deadLetter` finds the message that the record was made from. A store that is also an inlet knows by it whether
 * that message is a replay of its own, whose record is to be replaced.
 */
export const deadLetteredMessageKey: ContextKey<Message> = contextKey<Message>('dead-lettered message')

/** Options of {@link dlq}. */
export interface DlqOptions {
  /** Also dead-letters what merely ran out of attempts. Default true. */
  readonly deadLetterRetryable?: boolean
  /** For `deadLetteredAtMs`. Default: the hopper's. */
  readonly clock?: Clock
  /** Chance for the delay after a failed write. Default `Math.random`. */
  readonly random?: Random
  /** A failed write is tried again after at most this, doubling per attempt. Default 1000. */
  readonly retryDelayMs?: Ms
  /** … up to this. Default 60 000. */
  readonly retryMaxMs?: Ms
}

/**
 * Dead-letters what is terminated, so nothing is dropped without a trace. List it outside `retry`: only there does it see
 * what ran out of attempts. A write that fails turns into a delayed redelivery, never into a loss. The message is not run again meanwhile:
 * what was decided is kept with it, where the subscription can (`Message.note`), else in this process.
 *
 * @example
 * ```ts
 * const letters = new MemDeadLetter()
 * const hopper = new Hopper({ middleware: [dlq(letters), retry()] })
 * ```
 */
export function dlq(store: DeadLetterStore, options?: DlqOptions): Middleware {
  if (typeof store?.deadLetter !== 'function') {
    throw new OptionTypeError('dlq(store)', 'a DeadLetterStore with deadLetter(ctx, record)', store)
  }
  const given = readOptions('dlq', options, {
    deadLetterRetryable: flag(true),
    clock: clock(undefined),
    random: callable(Math.random),
    retryDelayMs: number({ min: 0, max: MAX_DELAY_MS, default: 1_000 }),
    retryMaxMs: number({ min: 0, max: MAX_DELAY_MS, default: 60_000 }),
  })
  const { deadLetterRetryable, random, retryDelayMs: baseMs, retryMaxMs: maxMs } = given
  const verdicts = new Verdicts()

  const deadLetter = async (ctx: Context, message: Message, verdict: KeptVerdict): Promise<Result> => {
    const { result, attempts } = verdict
    const source = ctx.get(hostKey)?.name ?? ''
    const record = recordOf(message, result, attempts, clockIn(ctx, given.clock).now(), source)
    try {
      await store.deadLetter(ctx.with(deadLetteredMessageKey, message), record)
    } catch (storeError) {
      const failures = verdict.failures + 1
      const exponent = Math.max(attempts, failures) - 1
      const delayMs = Math.floor(doublingDelay(exponent, { baseMs, maxMs, jitter: 'full' }, random))
      reportFailure(ctx, record, storeError, delayMs)
      const kept: KeptVerdict = { ...verdict, failures }
      verdicts.keep(message, kept)
      const extras = { nextAttempt: attempts + 1, noEscalate: true, note: writeVerdict(kept) } as const
      return nakAfter(delayMs, both(result.error, storeError), extras)
    }
    verdicts.forget(message)
    return Object.freeze({ ...result, deadLettered: true })
  }

  return defineMiddleware<never>({
    kind: 'dlq',
    before(ctx, message) {
      // It is decided already: only its dead letter is missing.
      const verdict = verdicts.of(message)
      if (verdict === undefined) return GO_ON
      return deadLetter(ctx, message, verdict).then((answer) => ({ answer }))
    },
    after(ctx, message, result) {
      if (result.action !== 'term' || result.deadLettered === true) return result
      return result.class === 'retryable' && !deadLetterRetryable
        ? result
        : deadLetter(ctx, message, { result, attempts: attemptsOf(ctx, message), failures: 0 })
    },
  })
}

const GO_ON: Before<never> = Object.freeze({ state: undefined as never })

/** Copies: what the adapter does with its buffers afterwards must not change what was dead-lettered. */
function recordOf(
  message: Message,
  result: ResultOf<'term'>,
  attempts: number,
  deadLetteredAtMs: At,
  source: string,
): DeadLetterRecord {
  return Object.freeze({
    // Not slice(): on a Buffer, which is what most clients deliver, that is a view of the same bytes.
    key: message.key === null ? null : new Uint8Array(message.key),
    value: new Uint8Array(message.value),
    headers: Object.freeze([...message.headers]),
    subject: message.subject,
    partitionKey: message.partitionKey,
    class: result.class,
    reason: classLabel(result.class),
    attempts,
    lastError: result.error === undefined ? '' : errorMessage(result.error),
    errorName: result.error === undefined ? '' : errorName(result.error),
    cursor: message.cursor.toString(),
    deadLetteredAtMs,
    source,
  })
}

function attemptsOf(ctx: Context, message: Message): number {
  const [n, isKnown] = attempt(ctx)
  if (isKnown) return n
  return parseAttempt(message.headers.get(AttemptHeader) ?? '') ?? 1
}

function both(error: unknown, storeError: unknown): AggregateError {
  const why = `A terminated message could not be dead-lettered: ${errorText(storeError)}`
  return new AggregateError(error === undefined ? [storeError] : [error, storeError], why)
}

function reportFailure(ctx: Context, record: DeadLetterRecord, error: unknown, delayMs: Ms): void {
  ctx.get(hostKey)?.logger.error('A dead letter could not be stored; its message is delivered again', {
    name: record.source,
    subject: record.subject,
    cursor: record.cursor,
    attempts: record.attempts,
    delayMs,
    error,
  })
}
