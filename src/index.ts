/** What an application needs: typed work, on the memory backend or on one that it brings, its failures and its doers. */
import { memoryBackend } from './backends/memory/index.js'
import { overPlainPorts } from './backends/plain/over-plain-ports.js'
import { createWorkOn, type WorkSystem } from './work/create-work.js'
import type { AnyWorkType } from './work/define/work.js'
import type { WorkSystemOptions } from './work/options.js'

/**
 * Makes a work system and starts it. Without ports it runs in memory, in this process; give it a backend to run on a fleet.
 *
 * @example
 * ```ts
 * const add = defineWork('add', (i: { a: number; b: number }, ctx) => ctx.result(i.a + i.b))
 * const w = createWork({ work: [add] })
 * await w.enqueue(add({ a: 1, b: 2 })).result() // 3
 * await w.stop()
 * ```
 */
export function createWork<const Defs extends readonly AnyWorkType[] = readonly AnyWorkType[]>(
  options?: Omit<WorkSystemOptions, 'work'> & { readonly work?: Defs },
): WorkSystem<Defs> {
  return createWorkOn<Defs>({ memoryBackend, overPlainPorts }, options)
}

/**
 * The default system: in memory, with no registered types, not started. Work that is enqueued here brings its type along.
 */
export const work: WorkSystem = /* @__PURE__ */ createWork({ autoStart: false })

/** `enqueue` of the default system. */
export const enqueue: WorkSystem['enqueue'] = /* @__PURE__ */ (() => work.enqueue)()
/** `schedule` of the default system. */
export const schedule: WorkSystem['schedule'] = /* @__PURE__ */ (() => work.schedule)()
/** `start` of the default system. */
export const start: WorkSystem['start'] = /* @__PURE__ */ (() => work.start)()
/** `stop` of the default system. */
export const stop: WorkSystem['stop'] = /* @__PURE__ */ (() => work.stop)()
/** `list` of the default system. */
export const list: WorkSystem['list'] = /* @__PURE__ */ (() => work.list)()

export {
  type MemoryBackendOptions,
  memoryBackend,
  memoryPubSub,
  memoryQueue,
  memoryStore,
  QueueFileDamagedError,
} from './backends/memory/index.js'
export { defaultCodec, type JsonCodec } from './core/codec/codec.js'
export { ageDoer } from './core/doer/age.js'
export { balancedDoer } from './core/doer/balanced.js'
export { doWith } from './core/doer/do-with.js'
export type { Doer, DoerTaskOptions } from './core/doer/doer.js'
export { priorityDoer } from './core/doer/priority.js'
export { rateLimitedDoer } from './core/doer/rate/rate-limited.js'
export type { RateLimitedDoerOptions } from './core/doer/rate/rate-options.js'
export { unlimitedDoer } from './core/doer/unlimited.js'
export { MillraceError } from './core/error.js'
export { classify } from './core/failure/classify.js'
export { RetryAbort, WorkDelayError, type WorkDelaySpec } from './core/failure/control-errors.js'
export type { FailureClass, Verdict } from './core/failure/failure.js'
export {
  InvalidForStateError,
  NonRetryableError,
  PoisonError,
  RetryAfterError,
  RetryableError,
} from './core/failure/failure-errors.js'
export { isInvalidForState, isPoison, isRetryable } from './core/failure/failure-predicates.js'
export { fingerprint } from './core/failure/fingerprint.js'
export { BufferFullError, OutcomeUnknownError } from './core/group-commit.js'
export { setIdGenerator } from './core/ids.js'
// This comes through its own door, and so does what ports/index and types export below. With those doors loaded, the compiler
// can name every type in the declarations of a program that exports its work.
export { createMetrics, DEFAULT_BUCKETS, formatPrometheus, type Metrics, WORK_METRICS } from './core/metrics/index.js'
export { OptionError } from './core/options.js'
export { adaptiveDelay } from './core/retry/adaptive-delay.js'
export { backoff } from './core/retry/backoff.js'
export { preview } from './core/retry/preview.js'
export { type RetryOptions, retry } from './core/retry/retry.js'
export { getDefaultRetryOptions, type RetryState, setDefaultRetryOptions } from './core/retry/retry-defaults.js'
export { DEFAULT_RETRY_OPTIONS } from './core/retry/retry-policy.js'
export type { Clock } from './core/time/clock.js'
export { type Backend, WrongModeError } from './ports/index.js'
export { CancelledError, LeaseLostError, ShutdownDeadlineError } from './source/loop/errors.js'
export type { GroupOf, InputOf, SelfOf } from './types.js'
export type { CancelResult } from './work/control/cancel.js'
export { NotSupportedError } from './work/control/pause.js'
export type { WorkCapabilities, WorkSystem } from './work/create-work.js'
export { conditionMet } from './work/define/condition.js'
export { type BatchConfig, defineBatchWork } from './work/define/define-batch-work.js'
export { defineContract } from './work/define/define-contract.js'
export { defineWork } from './work/define/define-work.js'
export { DEPENDENCY_TYPE, type DependencyOptions, dependency } from './work/define/dependency.js'
export { InvalidInputError } from './work/define/input-schema.js'
export { DuplicateTypeError, UnknownTypeError } from './work/define/registry.js'
export type {
  AnyWorkBuilder,
  DependencyCondition,
  EnqueueOptions,
  GroupItem,
  ItemHandle,
  ListFilter,
  ProgressOptions,
  Receipt,
  ResultOptions,
  WaitOptions,
  Work,
  WorkBuilder,
  WorkContext,
  WorkContract,
  WorkHandle,
  WorkHandler,
  WorkInstanceOptions,
  WorkResult,
  WorkState,
  WorkStatus,
} from './work/define/work.js'
export type { FailureClassifier, FailureDecision, WorkFailureInfo, WorkOptions } from './work/define/work-options.js'
export { NotStoredError } from './work/enqueue/enlisted.js'
export { ItemRefusedError } from './work/enqueue/enqueue.js'
export { EncodeError } from './work/enqueue/resolve-item.js'
export type { WorkEvent } from './work/observe/events.js'
export type { WorkLogger } from './work/observe/log.js'
export type { WorkSystemOptions } from './work/options.js'
export type { BatchOutcome, BatchOutcomes } from './work/run/batch-outcome.js'
export { DeadlineError, RunTimeoutError } from './work/run/run-limits.js'
export type { ScheduleConfig } from './work/schedule/config.js'
export { CronError, parseCron } from './work/schedule/cron.js'
export { nextAfter } from './work/schedule/next-after.js'
export { UnknownItemError } from './work/wait/item-handle.js'
export { ResultExpiredError, WaitTimeoutError } from './work/wait/waiters.js'
export { WorkFailedError } from './work/wait/work-failed-error.js'
export type { ActiveWork } from './work/worker/active-items.js'
