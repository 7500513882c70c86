import type { StandardSchemaV1 } from '@standard-schema/spec'
import { MillraceError } from '../../core/error.js'
import { classify } from '../../core/failure/classify.js'
import { SchemaError } from '../../core/failure/failure-errors.js'
import { OptionTypeError } from '../../core/options.js'
import { nak, type Result, term } from '../../core/stream/result.js'
import type { MaybePromise } from '../../core/time/time.js'
import type { Context } from '../message/context.js'
import { decoded, isPrepared, overrideOf, PreparedMessage } from '../message/decoded.js'
import type { Message } from '../message/message.js'
import { type Before, defineMiddleware } from './define-middleware.js'
import type { Middleware } from './handler.js'
import { resultOfError } from './handler-result.js'
import { clockIn } from './middleware-host.js'

/** Throws, or returns an error, when a message is not valid. */
export type Validator = (ctx: Context, message: Message) => MaybePromise<Error | undefined | void>

/** What a Standard Schema found wrong with a payload. The cause of a `SchemaError`. */
export class InvalidPayloadError extends MillraceError {
  readonly issues: readonly StandardSchemaV1.Issue[]
  constructor(issues: readonly StandardSchemaV1.Issue[]) {
    super('INVALID_PAYLOAD', issues.map(issueText).join('; '))
    this.issues = issues
  }
}

/**
 * Lets only valid messages through: an invalid one is poison, and its handler never sees it. Takes a function, or any
 * Standard Schema (zod, valibot, arktype, …) for the decoded payload; the handler then gets what the schema made of it,
 * with its defaults and transforms. A validator that could not do its work (a registry that is down) makes the message
 * come again.
 *
 * @example
 * ```ts
 * const Order = z.object({ id: z.string(), qty: z.number().int().positive() })
 * const hopper = new Hopper({ codec: jsonCodec(), middleware: [dlq(letters), retry(), schema(Order)] })
 * ```
 */
export function schema(validator: Validator | StandardSchemaV1): Middleware {
  const standard = isStandard(validator) ? validator : undefined
  if (standard === undefined && typeof validator !== 'function') {
    throw new OptionTypeError('schema(validator)', 'a function or a Standard Schema', validator)
  }
  const check = standard === undefined ? byFunction(validator as Validator) : byStandard(standard)
  return defineMiddleware<undefined>({
    kind: 'schema',
    ...(standard === undefined ? {} : { needsCodec: true }),
    async before(ctx, message) {
      // What could not be decoded is settled already, with a better reason than ours.
      if (overrideOf(message) !== undefined) return VALID
      try {
        return await check(ctx, message)
      } catch (error) {
        return { answer: refused(ctx, message, error) }
      }
    },
  })
}

type Check = (ctx: Context, message: Message) => Promise<Before<undefined>>

const NOT_DECODED =
  'schema() with a Standard Schema checks decoded payloads, and this message has none: give the hopper a codec or a registry.'

const VALID: Before<undefined> = Object.freeze({ state: undefined })

function byFunction(validate: Validator): Check {
  return async (ctx, message) => {
    const answer: unknown = await validate(ctx, message)
    if (answer === undefined || answer === null) return VALID
    if (answer instanceof Error) return { answer: refused(ctx, message, answer) }
    // A mistake in the validator, not in the message: dead-lettering every message as poison for it would be worse.
    return {
      answer: nak(new OptionTypeError('schema(validator)', 'a function that returns nothing or an Error', answer)),
    }
  }
}

function byStandard(standard: StandardSchemaV1): Check {
  return async (ctx, message) => {
    const payload = decoded(message)
    if (!payload.ok) return { answer: nak(new MillraceError('NO_CODEC', NOT_DECODED)) }
    const checked = await standard['~standard'].validate(payload.value)
    if (checked.issues !== undefined) return { answer: refused(ctx, message, new InvalidPayloadError(checked.issues)) }
    if (Object.is(checked.value, payload.value)) return VALID
    const original = isPrepared(message) ? message.original : message
    return { state: undefined, message: new PreparedMessage(original, { decoded: { ok: true, value: checked.value } }) }
  }
}

/** A registry that cannot be reached says nothing about the message: only what is not plainly transient is poison. */
function refused(ctx: Context, message: Message, problem: unknown): Result {
  const { now } = clockIn(ctx, undefined)
  const verdict = classify(problem, { now: now() })
  const isPassing = verdict.class === 'unclassified' || (verdict.class === 'retryable' && verdict.rule !== 'default')
  return isPassing ? resultOfError(problem, now) : term(new SchemaError(message.subject, problem))
}

function isStandard(value: unknown): value is StandardSchemaV1 {
  return (typeof value === 'object' || typeof value === 'function') && value !== null && '~standard' in value
}

function issueText(issue: StandardSchemaV1.Issue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return path === '' ? issue.message : `${path}: ${issue.message}`
}
