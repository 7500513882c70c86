/**
 * Types that few programs write out, and that the compiler needs to name when a program emits declarations of its work:
 * the parts of the front door's types, the options of its functions, and helpers of inference. It has no values.
 */
export type {
  DeadLettered,
  MemoryBackend,
  MemoryOptions,
  MemoryPubSub,
  MemoryQueue,
  MemoryQueueKeeping,
  MemoryQueueOptions,
  MemoryQueuePersistence,
  MemoryStore,
  QueueFsLike,
} from './backends/memory/index.js'
export type { BacklogInfo } from './core/doer/backlog-alarm.js'
export type { BoundedDoerOptions } from './core/doer/bounded.js'
export type { RateLimitAlgorithm } from './core/doer/rate/rate-limit.js'
export type { RateLimitedBacklogInfo, RateLimitedDoer, RateTaskOptions } from './core/doer/rate/rate-options.js'
export type { RateLimitStore } from './core/doer/rate/stored-limiter.js'
export type { UnlimitedDoerOptions } from './core/doer/unlimited.js'
export type { Facts } from './core/error.js'
export type { ClassifyOptions, ClassifyRule } from './core/failure/classify.js'
export type { ErrorDetail } from './core/failure/error-detail.js'
export type { IdGenerator } from './core/ids.js'
export type { AdaptiveDelay, AdaptiveDelayOptions } from './core/retry/adaptive-delay.js'
export type { DelayRange } from './core/retry/backoff.js'
export type { Jitter } from './core/retry/jitter.js'
export type { PreviewedAttempt, PreviewOptions, StreamPolicyOptions } from './core/retry/preview.js'
export type { DefaultRetryOptions, RetryHooks } from './core/retry/retry-defaults.js'
export type { RetryPolicy, RetryPolicyOptions } from './core/retry/retry-policy.js'
export type { Redact, RedactAbout } from './core/text/redact.js'
export type { Random } from './core/time/clock.js'
export type { Pausable } from './work/control/pause.js'
export type { Batch, BatchedItem, BatchReturned, WithBatchHandler } from './work/define/define-batch-work.js'
export type { WithHandler } from './work/define/define-work.js'
export type { DependencyInput } from './work/define/dependency.js'
export type {
  AnyWorkContract,
  AnyWorkType,
  BuilderForName,
  ContractDefinition,
  GroupForName,
  GroupOf,
  GroupOfBuilder,
  GroupOfItem,
  GroupOfWork,
  InputForName,
  InputOf,
  ManyOptions,
  ManyReceipts,
  NameOf,
  NonVoidUnion,
  OutputOf,
  RegistryNames,
  SelfForName,
  SelfOf,
  SelfOfWork,
  StateCondition,
  WorkDefinition,
  WorkRetry,
} from './work/define/work.js'
export type { ContractOptions, RunOptions } from './work/define/work-options.js'
export type { WorkLogFacts, WorkLogKind } from './work/observe/log-lines.js'
export type {
  BackpressureContext,
  ErrorPhase,
  LogWith,
  UnhandledWorkGroupInfo,
  WorkAcceptInfo,
  WorkBacklogInfo,
} from './work/options.js'
export type { BatchFail, BatchOk, BatchValue } from './work/run/batch-outcome.js'
export type { ScheduledFire } from './work/schedule/config.js'
export type { Cron } from './work/schedule/cron.js'
export type { HealthOptions, HealthReason, WorkActivity, WorkHealth } from './work/worker/health.js'
export type { IdleRun, UntilIdleOptions } from './work/worker/until-idle.js'
