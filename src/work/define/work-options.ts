import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JsonCodec } from '../../core/codec/codec.js'
import type { Doer } from '../../core/doer/doer.js'
import type { FailureClass } from '../../core/failure/failure.js'
import {
  booleanOption,
  functionOption,
  integerOption,
  numberOption,
  OptionError,
  OptionRangeError,
  OptionTypeError,
  optionsObject,
} from '../../core/options.js'
import { RETRY_HOOKS } from '../../core/retry/retry-defaults.js'
import { checkRetryPolicy } from '../../core/retry/retry-policy.js'
import { MOST_TAGS } from '../../ports/envelope.js'
import type { Queue } from '../../ports/ports.js'
import type { WorkEvent } from '../observe/events.js'
import type { WorkInstanceOptions, WorkRetry } from './work.js'

/** What to do about a failure: try again as the policy says, stop, take a class, or run again later without counting. */
export type FailureDecision = 'retry' | 'abort' | FailureClass | { readonly delay: number } | { readonly runAt: number }

/** What `onFailure` gets besides the error. */
export interface WorkFailureInfo {
  readonly id: string
  readonly type: string
  readonly attempt: number
  readonly attempts: number
}

/** Decides about what a handler threw. If it returns nothing, the error's class decides. */
export type FailureClassifier = (
  error: unknown,
  info: WorkFailureInfo,
) => FailureDecision | undefined | void | Promise<FailureDecision | undefined | void>

/** Options of a work type that count where its items are enqueued: they belong to its contract. */
export interface ContractOptions<I = unknown> extends Omit<WorkInstanceOptions, 'runAt' | 'deadline' | 'tx'> {
  /** Options computed from the input: between those of the type and those of the instance. */
  readonly options?: (input: I) => WorkInstanceOptions | undefined
  /**
   * What inputs of this type must be: any Standard Schema (zod, valibot, arktype, …). It checks the input when the item is
   * enqueued, and again when it runs; the handler gets what the schema returns.
   */
  readonly input?: StandardSchemaV1
  /** Encodes this type's input and result. Default: the system's. */
  readonly codec?: JsonCodec
  /** Where items of this type wait. Default: the system's queue. */
  readonly queue?: Queue
}

/** Options of a work type that count where its handler runs. */
export interface RunOptions<O = unknown> {
  /** How many of this type run at the same time in a process, within the system's limit. Default: no further limit. */
  readonly concurrency?: number
  /** Decides how many of this type run at the same time, and which is next, instead of `concurrency`. Default: the system's. */
  readonly doer?: Doer
  readonly onFailure?: FailureClassifier
  /** Every instruction that a handler makes must be part of what it returns. Default: the system's, true. */
  readonly strictReturn?: boolean
  readonly onEvent?: (event: WorkEvent) => void
  /** What to log with, for a run of this input. */
  readonly logContext?: (input: O) => Readonly<Record<string, unknown>> | undefined
}

/** Options of a work type. They win over those of the system, and lose against those of an instance. */
export interface WorkOptions<I = unknown, O = I> extends ContractOptions<I>, RunOptions<O> {}

/** The options that a type and a single item have in common. */
export const ITEM_OPTION_NAMES = [
  'delay',
  'priority',
  'group',
  'retry',
  'timeout',
  'skipQueue',
  'tags',
  'runTimeout',
  'strictDeadline',
] as const satisfies readonly (keyof WorkInstanceOptions & keyof WorkOptions)[]

const CONTRACT_NAMES = [
  ...ITEM_OPTION_NAMES,
  'options',
  'input',
  'codec',
  'queue',
] as const satisfies readonly (keyof ContractOptions)[]

const RUN_NAMES = [
  'concurrency',
  'doer',
  'onFailure',
  'strictReturn',
  'onEvent',
  'logContext',
] as const satisfies readonly (keyof RunOptions)[]

export function checkWorkOptions(type: string, options: WorkOptions<never>): void {
  optionsObject(`work "${type}"`, options, [...CONTRACT_NAMES, ...RUN_NAMES])
  checkContract(type, options)
  checkRun(type, options)
}

/** Checks the options of a contract. */
export function checkContractOptions(type: string, options: ContractOptions<never>): void {
  const owner = `contract "${type}"`
  refuse(owner, options, RUN_NAMES, 'given to defineWork(contract, handler, options): it counts where the handler runs')
  optionsObject(owner, options, CONTRACT_NAMES)
  checkContract(type, options)
}

/** Checks the options of a handler that carries out a contract. */
export function checkRunOptions(type: string, options: RunOptions<never>): void {
  const owner = `work "${type}"`
  refuse(owner, options, CONTRACT_NAMES, 'given to defineContract: it counts where items are enqueued')
  optionsObject(owner, options, RUN_NAMES)
  checkRun(type, options)
}

/** Refuses what belongs elsewhere, and says where. */
function refuse(owner: string, options: object, names: readonly string[], instead: string): void {
  const found = names.find((name) => name in Object(options))
  if (found === undefined) return
  throw new OptionError(`${owner}.${found}`, instead, (options as Record<string, unknown>)[found])
}

function checkContract(type: string, options: ContractOptions<never>): void {
  checkItemOptions(`work "${type}"`, options)
  if (options.options !== undefined) functionOption(`work "${type}".options`, options.options)
  if (options.input !== undefined && !isSchema(options.input)) {
    throw new OptionTypeError(`work "${type}".input`, 'a Standard Schema, like those of zod or valibot', options.input)
  }
}

function checkRun(type: string, options: RunOptions<never>): void {
  checkDoer(`work "${type}".doer`, options.doer)
  for (const name of ['onFailure', 'onEvent', 'logContext'] as const) {
    if (options[name] !== undefined) functionOption(`work "${type}".${name}`, options[name])
  }
  if (options.strictReturn !== undefined) booleanOption(`work "${type}".strictReturn`, options.strictReturn)
  concurrencyOption(`work "${type}"`, options, undefined)
}

/** Copies: later changes to the caller's objects do not change the type. */
export function frozenOptions<T extends { readonly retry?: WorkRetry }>(options: T): T {
  return Object.freeze({
    ...options,
    ...(options.retry === undefined ? {} : { retry: Object.freeze({ ...options.retry }) }),
  })
}

/** How many run at the same time. A doer decides that itself, so only one of the two can be given. */
export function concurrencyOption<D extends number | undefined>(
  owner: string,
  { concurrency, doer }: { readonly concurrency?: number; readonly doer?: Doer },
  fallback: D,
): number | D {
  if (concurrency === undefined) return fallback
  if (doer !== undefined) {
    throw new OptionError(
      `${owner}.concurrency`,
      'left out where a doer is given: the doer decides how many run',
      concurrency,
    )
  }
  return integerOption(`${owner}.concurrency`, concurrency, { min: 1 })
}

const LONGEST_TAG = 256

/** Checks the options that a type and a single item have in common. */
export function checkItemOptions(owner: string, options: WorkInstanceOptions): void {
  const { delay, priority, timeout, runTimeout, skipQueue, strictDeadline, group } = options
  if (delay !== undefined) numberOption(`${owner}.delay`, delay, { min: 0 })
  if (priority !== undefined) numberOption(`${owner}.priority`, priority)
  if (timeout !== undefined) numberOption(`${owner}.timeout`, timeout, { min: 0 })
  if (runTimeout !== undefined) numberOption(`${owner}.runTimeout`, runTimeout, { above: 0 })
  if (skipQueue !== undefined) booleanOption(`${owner}.skipQueue`, skipQueue)
  if (strictDeadline !== undefined) booleanOption(`${owner}.strictDeadline`, strictDeadline)
  if (group !== undefined && typeof group !== 'string') throw new OptionTypeError(`${owner}.group`, 'a string', group)
  checkTags(`${owner}.tags`, options.tags)
  checkRetry(`${owner}.retry`, options.retry)
}

function checkTags(path: string, tags: unknown): void {
  if (tags === undefined) return
  if (!Array.isArray(tags) || tags.some((tag) => typeof tag !== 'string' || tag === '')) {
    throw new OptionTypeError(path, 'a list of strings that are not empty', tags)
  }
  if (tags.length > MOST_TAGS) throw new OptionRangeError(path, `at most ${MOST_TAGS} tags`, tags.length)
  const long = tags.find((tag: string) => tag.length > LONGEST_TAG)
  if (long !== undefined) throw new OptionRangeError(path, `tags of at most ${LONGEST_TAG} characters`, long)
}

/** Checks a user's doer here, because what it lacks would only show when the first item is claimed. */
export function checkDoer(path: string, doer: unknown): void {
  if (doer === undefined) return
  const { do: take, available } = Object(doer) as Partial<Doer>
  if (typeof take === 'function' && typeof available === 'function') return
  throw new OptionTypeError(path, 'a doer, like priorityDoer({ max: 5 })', doer)
}

/** Refuses a bad policy where it is given, not at the first failure. */
export function checkRetry(path: string, retry: WorkRetry | undefined): void {
  if (retry !== undefined) checkRetryPolicy(path, retry, RETRY_HOOKS)
}

/** Whether it can be asked to validate. */
export function isSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<StandardSchemaV1>)['~standard']
  return typeof standard?.validate === 'function'
}
