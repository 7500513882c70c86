import type { Result } from '../../core/stream/result.js'
import type { MaybePromise } from '../../core/time/time.js'
import type { Context } from '../message/context.js'
import type { Message } from '../message/message.js'

/** Does the work of one message and says what should happen to it. It never settles, and may run twice for one message. */
export type Handler = (ctx: Context, message: Message) => MaybePromise<Result>

/** Does the work of many messages together: one result for each, in the same order. */
export type BatchHandler = (ctx: Context, messages: readonly Message[]) => MaybePromise<readonly Result[]>

/** One message of a batch with its own context: each member has its own attempt. */
export interface BatchEntry {
  readonly ctx: Context
  readonly message: Message
}

/** A batch on its way through the middleware: one result for each entry, in the same order. */
export type BatchStep = (entries: readonly BatchEntry[]) => Promise<readonly Result[]>

/**
 * Wraps a handler: it may read the message first, change the result afterwards, or answer without calling `next`.
 *
 * @example
 * ```ts
 * const timed: Middleware = (next) => async (ctx, message) => {
 *   const started = performance.now()
 *   try {
 *     return await next(ctx, message)
 *   } finally {
 *     console.log(message.subject, performance.now() - started)
 *   }
 * }
 * ```
 */
export interface Middleware {
  (next: Handler): Handler
  /** What it does (`'retry'`, `'dlq'`, …), so that `chain` can check the order. Untagged middleware may stand anywhere. */
  readonly kind?: string
  /** The same for a batch. Without it, the middleware cannot be used in batch mode. */
  readonly mapBatch?: (next: BatchStep) => BatchStep
  /** Of kind `'retry'`: the cap, which the Hopper compares with its own limit of deliveries. */
  readonly maxAttempts?: number
  /** It reads the decoded payload, so a Hopper without a codec is refused. */
  readonly needsCodec?: boolean
  /** It knows messages by their cursors, so a subscription whose cursors name no messages is refused. */
  readonly needsIdentity?: boolean
}
