import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JsonCodec } from '../core/codec.js'
import type { Doer } from '../core/doer/doer.js'
import type { FailureClass } from '../core/failure.js'
import { booleanOption, numberOption, OptionTypeError, optionsObject } from '../core/options.js'
import { RETRY_HOOKS } from '../core/retry-defaults.js'
import { checkRetryPolicy } from '../core/retry-policy.js'
import type { Queue } from '../ports/ports.js'
import { isSchema } from './controls/input.js'
import type { WorkEvent } from './events.js'
import type { WorkInstanceOptions, WorkRetry } from './work.js'

/** What to do about a failure: try again as the policy says, stop, take a class, or run again later without counting. */
export type FailureDecision = 'retry' | 'abort' | FailureClass | { readonly delay: number } | { readonly runAt: number }

/** What `onFailure` is told beside the error. */
export interface WorkFailureInfo {
  readonly id: string
  readonly type: string
  readonly attempt: number
  readonly attempts: number
}

/** Looks at what a handler threw. Nothing returned means: as classified. */
export type FailureClassifier = (
  error: unknown,
  info: WorkFailureInfo,
) => FailureDecision | undefined | void | Promise<FailureDecision | undefined | void>

/** Options of a work type. They win over those of the system, and lose against those of an instance. */
export interface WorkOptions<I = unknown, O = I> extends Omit<WorkInstanceOptions, 'runAt' | 'deadline'> {
  /** Options computed from the input: between those of the type and those of the instance. */
  readonly options?: (input: I) => WorkInstanceOptions | undefined
  /**
   * What inputs of this type must be: any Standard Schema (zod, valibot, arktype, …). Held against the input when it is
   * enqueued, and again when it runs; the handler gets what the schema makes of it.
   */
  readonly input?: StandardSchemaV1
  /** Encodes this type's input and result. Default: the system's. */
  readonly codec?: JsonCodec
  /** Where items of this type wait. Default: the system's queue. */
  readonly queue?: Queue
  /** What decides how many of this type run at once. Default: the system's. */
  readonly doer?: Doer
  readonly onFailure?: FailureClassifier
  /** Every instruction that a handler makes must be part of what it returns. Default: the system's, true. */
  readonly strictReturn?: boolean
  readonly onEvent?: (event: WorkEvent) => void
  /** What to log with, for a run of this input. */
  readonly logContext?: (input: O) => Readonly<Record<string, unknown>> | undefined
}

const NAMES = [
  'delay',
  'priority',
  'group',
  'retry',
  'timeout',
  'skipQueue',
  'tags',
  'runTimeout',
  'strictDeadline',
  'options',
  'input',
  'codec',
  'queue',
  'doer',
  'onFailure',
  'strictReturn',
  'onEvent',
  'logContext',
] as const satisfies readonly (keyof WorkOptions)[]

export function checkWorkOptions(type: string, options: WorkOptions<never>): void {
  optionsObject(`work "${type}"`, options, NAMES)
  checkRetry(`work "${type}" retry`, options.retry)
  checkControls(`work "${type}"`, options)
  if (options.input !== undefined && !isSchema(options.input)) {
    throw new OptionTypeError(`work "${type}".input`, 'a Standard Schema, like those of zod or valibot', options.input)
  }
}

/** The options that are the same for a type and for one item of it. */
export function checkControls(
  owner: string,
  { tags, runTimeout, strictDeadline }: Pick<WorkInstanceOptions, 'tags' | 'runTimeout' | 'strictDeadline'>,
): void {
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string' && tag !== ''))) {
    throw new OptionTypeError(`${owner}.tags`, 'a list of strings that are not empty', tags)
  }
  if (runTimeout !== undefined) numberOption(`${owner}.runTimeout`, runTimeout, { above: 0 })
  if (strictDeadline !== undefined) booleanOption(`${owner}.strictDeadline`, strictDeadline)
}

/** A policy that makes no sense is refused where it is given, not when the first failure meets it. */
export function checkRetry(path: string, retry: WorkRetry | undefined): void {
  if (retry !== undefined) checkRetryPolicy(path, retry, RETRY_HOOKS)
}
