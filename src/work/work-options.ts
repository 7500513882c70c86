import type { JsonCodec } from '../core/codec.js'
import type { Doer } from '../core/doer/doer.js'
import type { FailureClass } from '../core/failure.js'
import { optionsObject } from '../core/options.js'
import { RETRY_HOOKS } from '../core/retry-defaults.js'
import { checkRetryPolicy } from '../core/retry-policy.js'
import type { Queue } from '../ports/ports.js'
import type { WorkEvent } from './events.js'
import type { WorkInstanceOptions, WorkRetry } from './work.js'

/** What to do about a failure: try again as the policy says, stop, take a class, or run again later without counting. */
export type FailureDecision = 'retry' | 'abort' | FailureClass | { readonly delay: number } | { readonly runAt: number }

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
export interface WorkOptions<I = unknown> extends Omit<WorkInstanceOptions, 'runAt' | 'deadline'> {
  /** Options computed from the input: between those of the type and those of the instance. */
  readonly options?: (input: I) => WorkInstanceOptions | undefined
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
  readonly logContext?: (input: I) => Readonly<Record<string, unknown>> | undefined
}

const NAMES = [
  'delay',
  'priority',
  'group',
  'retry',
  'timeout',
  'skipQueue',
  'tags',
  'options',
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
}

/** A policy that makes no sense is refused where it is given, not when the first failure meets it. */
export function checkRetry(path: string, retry: WorkRetry | undefined): void {
  if (retry !== undefined) checkRetryPolicy(path, retry, RETRY_HOOKS)
}
