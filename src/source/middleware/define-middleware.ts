import type { Result } from '../../core/stream/result.js'
import { isPromise, type MaybePromise } from '../../core/time/time.js'
import type { Context } from '../message/context.js'
import type { Message } from '../message/message.js'
import type { BatchStep, Handler, Middleware } from './handler.js'
import { checked, resultOfError } from './handler-result.js'
import { clockIn } from './middleware-host.js'

/**
 * What `before` decided: answer without running the handler, or go on and remember `state` for `after`. With a `message`,
 * the handler sees that one instead.
 */
export type Before<S> = { readonly answer: Result } | { readonly state: S; readonly message?: Message | undefined }

/** A handler that threw, instead of returning a result. */
export interface Thrown {
  readonly error: unknown
}

/** A middleware in two halves. `S` is what the first half hands to the second. */
export interface MiddlewareParts<S> {
  /** What it does, in a word, so that `chain` can check the order. */
  readonly kind: string
  /** Of kind `'retry'`: the cap, which a hopper compares with its own limit of deliveries. */
  readonly maxAttempts?: number
  /** It reads the decoded payload, so a hopper without a codec is refused. */
  readonly needsCodec?: boolean
  /** It knows messages by their cursors, so a subscription whose cursors name no messages is refused. */
  readonly needsIdentity?: boolean
  /** Before the handler. A throw counts as one of the handler's. */
  readonly before?: (ctx: Context, message: Message) => MaybePromise<Before<S>>
  /**
   * After the handler. `thrown` is set when it threw, and `result` is then what the classifier makes of the error. Not
   * called when `before` answered.
   */
  readonly after?: (
    ctx: Context,
    message: Message,
    result: Result,
    state: S | undefined,
    thrown: Thrown | undefined,
  ) => MaybePromise<Result>
}

/**
 * Makes a middleware from its two halves, for single messages and for batches alike, so that no middleware is written
 * twice and none silently does nothing in batch mode. In a batch every member has its own halves: one that fails takes no
 * other with it.
 *
 * @example
 * ```ts
 * const onlyEurope = defineMiddleware<undefined>({
 *   kind: 'region',
 *   before: (_ctx, message) =>
 *     message.headers.get('region') === 'eu' ? { state: undefined } : { answer: skip() },
 * })
 * ```
 */
export function defineMiddleware<S>(parts: MiddlewareParts<S>): Middleware {
  const { before, after, kind, maxAttempts, needsCodec, needsIdentity } = parts

  // Not async functions: a chain runs for every message, and a synchronous answer costs no promise.
  const wrap =
    (next: Handler): Handler =>
    (ctx, message) => {
      const first = before?.(ctx, message)
      if (!isPromise(first)) return goOn(next, ctx, message, first)
      return Promise.resolve(first).then((found) => goOn(next, ctx, message, found))
    }

  const goOn = (next: Handler, ctx: Context, message: Message, first: Before<S> | undefined): MaybePromise<Result> => {
    if (isAnswer(first)) return first.answer
    const inner = first?.message ?? message
    if (after === undefined) return next(ctx, inner)
    const end = (result: unknown) => after(ctx, message, checked(result), first?.state, undefined)
    const fail = (error: unknown) => after(ctx, message, resultIn(ctx, error), first?.state, { error })
    let result: MaybePromise<Result>
    try {
      result = next(ctx, inner)
    } catch (error) {
      return fail(error)
    }
    return isPromise(result) ? Promise.resolve(result).then(end, fail) : end(result)
  }

  const mapBatch =
    (next: BatchStep): BatchStep =>
    async (entries) => {
      // Whatever fails, fails for its own message: the others have begun something that must be brought to its end.
      const firsts = await Promise.all(
        entries.map(async ({ ctx, message }) => {
          try {
            return await before?.(ctx, message)
          } catch (error) {
            return { answer: resultIn(ctx, error) }
          }
        }),
      )
      const going = entries.flatMap(({ ctx, message }, i) => {
        const first = firsts[i]
        return isAnswer(first) ? [] : [{ ctx, message: first?.message ?? message }]
      })
      let results: readonly Result[] = []
      let thrown: Thrown | undefined
      try {
        if (going.length > 0) results = await next(going)
      } catch (error) {
        thrown = { error }
      }
      let taken = 0
      return Promise.all(
        entries.map(async ({ ctx, message }, i) => {
          const first = firsts[i]
          if (isAnswer(first)) return first.answer
          const result = thrown === undefined ? checked(results[taken++]) : resultIn(ctx, thrown.error)
          if (after === undefined) return result
          try {
            return await after(ctx, message, result, first?.state, thrown)
          } catch (error) {
            return resultIn(ctx, error)
          }
        }),
      )
    }

  return Object.assign(wrap, {
    kind,
    mapBatch,
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(needsCodec === undefined ? {} : { needsCodec }),
    ...(needsIdentity === undefined ? {} : { needsIdentity }),
  })
}

function resultIn(ctx: Context, error: unknown): Result {
  return resultOfError(error, clockIn(ctx, undefined).now)
}

function isAnswer<S>(first: Before<S> | undefined): first is { readonly answer: Result } {
  return first !== undefined && 'answer' in first
}
