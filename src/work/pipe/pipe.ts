import { createHash } from 'node:crypto'
import { functionOption, OptionTypeError, optionsObject, stringOption } from '../../core/options.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import { ack, nakAfter, type Result, skip, term } from '../../core/stream/result.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import { hasCode } from '../../source/errors.js'
import { Hopper } from '../../source/hopper/hopper.js'
import type { HopperOptions } from '../../source/hopper/hopper-options.js'
import type { RunSummary } from '../../source/hopper/run-summary.js'
import type { Inlet, SubscribeConfig } from '../../source/inlets/subscription.js'
import type { Context } from '../../source/message/context.js'
import type { Message } from '../../source/message/message.js'
import { defineMiddleware } from '../../source/middleware/define-middleware.js'
import type { Middleware } from '../../source/middleware/handler.js'
import { resultOfError } from '../../source/middleware/handler-result.js'
import { defaultKey } from '../../source/middleware/idempotency-key.js'
import { retry } from '../../source/middleware/retry.js'
import type { WorkSystem } from '../create-work.js'
import { dependency } from '../define/dependency.js'
import type { EnqueueOptions, Receipt, Work, WorkBuilder } from '../define/work.js'
import { isWork } from '../settle/result-tree.js'
import type { ResultsInput } from './publish-results.js'

/** What a message becomes: work, work with options, or nothing. */
export type PipedWork = Work | readonly [work: Work, options: Omit<EnqueueOptions, 'id' | 'skipQueue'>] | undefined

/** Options of {@link pipe}. */
export interface PipeOptions {
  /** The system that gets the work. It need not be the one that runs it. */
  readonly to: Pick<WorkSystem, 'add'>
  /** What a message becomes; `undefined`: nothing, and it is skipped. What it throws is classified as in any handler. */
  readonly as: (message: Message, ctx: Context) => MaybePromise<PipedWork>
  /**
   * What names a message, for the id of its item. Default: `idempotency-key`, `message-id` or the CloudEvents id of its headers, else its
   * position in the stream; a subscription whose positions name no messages is refused then.
   */
  readonly keyOf?: (message: Message) => string
  /** Publishes the result of each item, once: made by `publishResults`. */
  readonly results?: WorkBuilder<string, ResultsInput, void, void>
  /** What to subscribe to. Default: what the inlet is for. */
  readonly config?: SubscribeConfig
  /** How many messages one call takes, and how long the first may wait for the rest. Default: 100, 5 ms. */
  readonly batch?: { readonly size: number; readonly maxWaitMs?: Ms }
  /** Options of the hopper underneath: its name, codec, `dlq`. Default middleware: `retry()`. */
  readonly hopper?: Omit<HopperOptions, 'batch'>
}

/** What a pipe did. `created` and `coalesced` count items: the second were there already, because a message came again. */
export interface PipeSummary extends RunSummary {
  readonly created: number
  readonly coalesced: number
}

/** A pipe that runs. */
export interface Pipe {
  /** Resolves when it has ended; rejects when the stream cannot be read any more. */
  readonly done: Promise<PipeSummary>
  /** Stops as a hopper does: nothing more is fetched, and what is being added is added. */
  close(options?: { readonly deadlineMs?: Ms }): Promise<void>
}

/** Waits between two tries to add the same item. */
const AGAIN = { baseMs: 100, maxMs: 10_000 }
/** An item that failed so often while others got through is at fault itself. */
const TRIES_BESIDE_OTHERS = 5
/** What no repetition changes: it is the item that is wrong. */
const FINAL_CODES = ['SCHEMA_MISMATCH', 'ENCODE_FAILED', 'TOO_LARGE', 'BAD_NAME', 'BAD_OPTION', 'INVALID_ID']
/** Longer keys become their hash: an id is a key of every index. */
const LONGEST_KEY = 200

/**
 * Adds work for every message of a stream, once: the item's id is made of the message's identity, so a message that comes again finds its
 * item there. A message is acknowledged when its item is durable, never before. While the work system cannot be
 * reached, messages wait where they are, and use up no attempts.
 *
 * @example
 * ```ts
 * const orders = pipe(inlet, { to: w, as: (message) => ship(JSON.parse(new TextDecoder().decode(message.value))) })
 * process.once('SIGTERM', () => void orders.close())
 * const { created, coalesced } = await orders.done
 * ```
 */
export function pipe(inlet: Inlet, options: PipeOptions): Pipe {
  if (typeof inlet?.subscribe !== 'function') throw new OptionTypeError('pipe(inlet)', 'an Inlet', inlet)
  const given = optionsObject('pipe', options, [
    ...(['to', 'as', 'keyOf', 'results'] as const),
    ...(['config', 'batch', 'hopper'] as const),
  ])
  if (typeof given.to?.add !== 'function') throw new OptionTypeError('pipe.to', 'a work system', given.to)
  const as = functionOption<PipeOptions['as']>('pipe.as', given.as)
  const keyOf = functionOption<(message: Message) => string>('pipe.keyOf', given.keyOf, defaultKey)
  const { size = 100, maxWaitMs = 5 } = given.batch ?? {}
  const { middleware = [retry()], ...rest } = given.hopper ?? {}
  const clock: Clock = rest.clock ?? systemClock
  const hopper = new Hopper({
    name: 'pipe',
    maxInFlight: 4 * size,
    ...rest,
    batch: { size, maxWaitMs },
    middleware: [...middleware, identified(given.keyOf === undefined)],
  })
  const counts = { created: 0, coalesced: 0 }
  const { to, results } = given

  /** Adds one item until it is durable, or until it is at fault, or until its time is up. */
  const addOne = async (ctx: Context, message: Message, piped: NonNullable<PipedWork>): Promise<Result> => {
    const [work, enqueue] = isWork(piped) ? [piped, {}] : piped
    if (!isWork(work)) throw new OptionTypeError('pipe.as(message)', 'work (a builder called with its input)', work)
    const id = idOf(work, message, keyOf)
    const before = counts.created + counts.coalesced
    let receipt: Receipt | undefined
    for (let tries = 1; ; tries += 1) {
      try {
        receipt ??= await to.add(work, { ...enqueue, id })
        // A crash in between is made good by the redelivery, which adds both again.
        if (results !== undefined)
          await to.add(dependency({ on: id, queue: results({ of: id }), config: 'all-done' }), { id: `${id}:results` })
        counts[receipt.kind] += 1
        return ack()
      } catch (error) {
        const isAlone = counts.created + counts.coalesced === before
        if (FINAL_CODES.some((code) => hasCode(error, code))) return term(error)
        if (!isAlone && tries >= TRIES_BESIDE_OTHERS) return resultOfError(error, clock.now)
        const delayMs = doublingDelay(tries - 1, AGAIN)
        if (tries === TRIES_BESIDE_OTHERS)
          rest.logger?.warn('A pipe cannot add its work; it goes on trying', { id, error })
        if (!(await slept(clock, delayMs, ctx.signal))) return nakAfter(0, error, { noEscalate: true })
      }
    }
  }

  const one = async (ctx: Context, message: Message): Promise<Result> => {
    try {
      const piped = await as(message, ctx)
      return piped === undefined ? skip() : await addOne(ctx, message, piped)
    } catch (error) {
      return resultOfError(error, clock.now)
    }
  }

  const done = hopper
    .receiveBatch(inlet, given.config ?? { topics: [] }, (ctx, messages) =>
      Promise.all(messages.map((message) => one(ctx, message))),
    )
    .then((summary): PipeSummary => ({ ...summary, ...counts }))
  // A caller that awaits it learns of a failure; `close` alone must not leave an unhandled one.
  done.catch(() => undefined)
  return {
    done,
    close: (close) => hopper.close(close),
  }
}

/** Lets the hopper refuse a stream whose positions name no messages. */
function identified(needsIdentity: boolean): Middleware {
  return defineMiddleware<undefined>({ kind: 'pipe', needsIdentity, before: () => ({ state: undefined }) })
}

/** The same for every delivery of a message, and for no other message or type of work. */
function idOf(work: Work, message: Message, keyOf: (message: Message) => string): string {
  const key = stringOption('pipe.keyOf(message)', keyOf(message))
  // A position names its stream already.
  const own = key.startsWith(`${message.subject}|`) ? key : `${message.subject}|${key}`
  const short = own.length <= LONGEST_KEY ? own : createHash('sha256').update(own).digest('base64url')
  return `${work.type}:${short}`
}

/** False: its time was up first. */
async function slept(clock: Clock, ms: Ms, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal)
    return true
  } catch {
    return false
  }
}
