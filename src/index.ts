/**
 * The main door: typed work on the memory backend, and the vocabulary that every layer speaks. It is the one place where
 * engine and memory backend meet; the engine itself knows no backend.
 */
import { memoryBackend } from './backends/memory/index.js'
import { createWorkOn, type WorkSystem } from './work/create-work.js'
import type { WorkSystemOptions } from './work/system-options.js'
import type { AnyWorkBuilder } from './work/work.js'

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
export function createWork<const Defs extends readonly AnyWorkBuilder[] = readonly []>(
  options?: WorkSystemOptions & { readonly work?: Defs },
): WorkSystem<Defs> {
  return createWorkOn<Defs>(memoryBackend, options)
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

// The memory backend
export {
  type DeadLettered,
  type MemoryBackend,
  type MemoryBackendOptions,
  type MemoryOptions,
  type MemoryPubSub,
  type MemoryQueue,
  type MemoryQueueKeeping,
  type MemoryQueueOptions,
  type MemoryQueuePersistence,
  type MemoryStore,
  memoryBackend,
  memoryPubSub,
  memoryQueue,
  memoryStore,
  QueueFileDamagedError,
  type QueueFsLike,
} from './backends/memory/index.js'
// Failures and what becomes of them
export { type AdaptiveDelay, type AdaptiveDelayOptions, adaptiveDelay } from './core/adaptive-delay.js'
export {
  type Backoff,
  type BackoffOption,
  backoff,
  type DelayRange,
  type ExponentialOptions,
  exponential,
  MAX_DELAY_MS,
} from './core/backoff.js'
export { type ClassifyOptions, type ClassifyRule, classify } from './core/classify.js'
export { type Clock, clockFrom, type Random, systemClock } from './core/clock.js'
export { defaultCodec, type JsonCodec } from './core/codec.js'
export { RetryAbort, WorkDelayError, type WorkDelaySpec } from './core/control-errors.js'
export { decideRetry, type FailedAttempt, type RetryDecision } from './core/decide-retry.js'
export { DEFAULT_BUCKETS } from './core/distribution.js'
export { ageDoer } from './core/doer/age.js'
export type { BacklogInfo } from './core/doer/backlog-alarm.js'
export { balancedDoer } from './core/doer/balanced.js'
export type { BoundedDoerOptions } from './core/doer/bounded.js'
export { doWith } from './core/doer/do-with.js'
export type { Doer, DoerTaskOptions } from './core/doer/doer.js'
export { priorityDoer } from './core/doer/priority.js'
export type { RateLimitAlgorithm } from './core/doer/rate-limit.js'
export { rateLimitedDoer } from './core/doer/rate-limited.js'
export type {
  RateLimitedBacklogInfo,
  RateLimitedDoer,
  RateLimitedDoerOptions,
  RateTaskOptions,
} from './core/doer/rate-options.js'
export type { RateLimitStore } from './core/doer/stored-limiter.js'
export { type UnlimitedDoerOptions, unlimitedDoer } from './core/doer/unlimited.js'
export { type Facts, MillraceError } from './core/error.js'
export { errorStack, errorText } from './core/error-text.js'
export { classLabel, FAILURE_CLASSES, type FailureClass, type Verdict } from './core/failure.js'
export {
  DecodeError,
  GuardRejection,
  InvalidForStateError,
  NonRetryableError,
  PoisonError,
  RetryAfterError,
  RetryableError,
  SchemaError,
} from './core/failure-errors.js'
export { isInvalidForState, isPoison, isRetryable } from './core/failure-predicates.js'
export { fingerprint } from './core/fingerprint.js'
export { type IdGenerator, InvalidIdError, newId, setIdGenerator } from './core/ids.js'
export type { Counter, Gauge, Summary } from './core/instruments.js'
export type { Jitter } from './core/jitter.js'
export { createMetrics, type Metrics, type MetricsOptions, type StatDetails } from './core/metrics.js'
export {
  isOptionError,
  OptionError,
  OptionRangeError,
  OptionTypeError,
  UnknownOptionError,
} from './core/options.js'
export { type PreviewedAttempt, type PreviewOptions, preview, type StreamPolicyOptions } from './core/preview.js'
export { formatPrometheus, type PrometheusOptions } from './core/prometheus.js'
export { type RetryOptions, retry } from './core/retry.js'
export {
  type DefaultRetryOptions,
  getDefaultRetryOptions,
  type RetryHooks,
  type RetryState,
  setDefaultRetryOptions,
} from './core/retry-defaults.js'
export { DEFAULT_RETRY_OPTIONS, type RetryPolicy, type RetryPolicyOptions } from './core/retry-policy.js'
export type { Labels, StatBucket, StatKind, StatMeta, StatSummary, StatValue } from './core/stat.js'
export type { At, Maybe, Ms } from './core/time.js'
export { WORK_METRICS, type WorkMetric } from './core/work-metrics.js'
// The ports, for backends of your own
export { readEnvelope, writeEnvelope } from './ports/envelope.js'
export { BufferFullError, OutcomeUnknownError } from './ports/group-commit.js'
export type {
  Attempt,
  Claimed,
  DeadEnding,
  Ending,
  Envelope,
  EnvelopeHead,
  Hold,
  Lease,
  Status,
} from './ports/item.js'
export type {
  ClaimAsk,
  ClaimReply,
  Counted,
  Inspect,
  ItemQuery,
  ItemSummary,
  ItemView,
  Ledger,
  PausedNames,
  ScheduleRecord,
  Settled,
  Worker,
} from './ports/ledger.js'
export { ledgerOf, type OpenedLedger, type Owned, own } from './ports/native.js'
export { overPlainPorts, type PlainOptions } from './ports/plain/index.js'
export type { Backend, Ports, PubSub, PulledWork, PushOptions, Queue, Store } from './ports/ports.js'
export type { ClosedGroup, CommitResult, Effect, GroupValue, Guard, Settlement } from './ports/settlement.js'
export { ITEM_STATE_WORDS, type ItemStateWord, stateWord } from './ports/words.js'
// Reasons of `ctx.signal`
export { CancelledError, LeaseLostError, ShutdownDeadlineError } from './source/loop/errors.js'
// Work
export type { ActiveWork } from './work/active.js'
export type { BatchFail, BatchOk, BatchOutcome, BatchOutcomes, BatchValue } from './work/batch-outcome.js'
export { conditionMet } from './work/condition.js'
export { type CancelAnswer, CancelContendedError } from './work/controls/cancel.js'
export { InvalidInputError } from './work/controls/input.js'
export { HandlerOverrunError } from './work/controls/overruns.js'
export { NotSupportedError, type Pausable } from './work/controls/pausing.js'
export { ProgressError } from './work/controls/progress-desk.js'
export { DeadlineError, RunTimeoutError } from './work/controls/run-limits.js'
export type { WorkCapabilities, WorkSystem } from './work/create-work.js'
export {
  type Batch,
  type BatchConfig,
  BatchOutputsError,
  type BatchReturned,
  defineBatchWork,
} from './work/define-batch-work.js'
export { defineWork } from './work/define-work.js'
export { DEPENDENCY_TYPE, type DependencyInput, type DependencyOptions, dependency } from './work/dependency.js'
export { NotStoredError } from './work/enlisted.js'
export type { WorkEvent } from './work/events.js'
export { DuplicateTypeError, UnknownTypeError } from './work/registry.js'
export { EncodeError } from './work/resolve-item.js'
export { NotAResultError, NotReturnedError } from './work/result-tree.js'
export type { ScheduleConfig, ScheduledFire } from './work/schedule/config.js'
export { type Cron, CronError, parseCron } from './work/schedule/cron.js'
export { nextAfter } from './work/schedule/next-after.js'
export type { StoredItem, StoredLink, StoredNode, StoredWork } from './work/stored-tree.js'
export { RefusedError } from './work/submitter.js'
export type {
  BackpressureContext,
  ErrorPhase,
  LogWith,
  UnhandledWorkGroupInfo,
  WorkAcceptInfo,
  WorkBacklogInfo,
  WorkSystemOptions,
} from './work/system-options.js'
export { ResultExpiredError, WaitTimeoutError } from './work/waiters.js'
export type {
  AnyWorkBuilder,
  BuilderForName,
  DependencyCondition,
  GroupForName,
  GroupItem,
  GroupOf,
  GroupOfBuilder,
  GroupOfItem,
  GroupOfWork,
  InputForName,
  InputOf,
  ListFilter,
  NameOf,
  NonVoidUnion,
  Receipt,
  RegistryNames,
  ResultOptions,
  SelfForName,
  SelfOf,
  SelfOfWork,
  StateCondition,
  WaitOptions,
  WatchOptions,
  Work,
  WorkBuilder,
  WorkContext,
  WorkDefinition,
  WorkHandle,
  WorkHandler,
  WorkInstanceOptions,
  WorkResult,
  WorkRetry,
  WorkState,
  WorkStatus,
} from './work/work.js'
export { UnreadableBodyError } from './work/work-loop.js'
export type { FailureClassifier, FailureDecision, WorkFailureInfo, WorkOptions } from './work/work-options.js'
