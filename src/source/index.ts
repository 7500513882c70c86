/** The door of streams: results, middleware, inlets and the Hopper that joins them. */

// What a handler says, and the errors that say it for you
export { type Clock, type Random, systemClock } from '../core/clock.js'
export { classLabel, type FailureClass } from '../core/failure.js'
export {
  DecodeError,
  GuardRejection,
  InvalidForStateError,
  NonRetryableError,
  PoisonError,
  RetryAfterError,
  RetryableError,
  SchemaError,
} from '../core/failure-errors.js'
export { isInvalidForState, isPoison, isRetryable } from '../core/failure-predicates.js'
export {
  type Action,
  ack,
  actionLabel,
  inProgress,
  isFailed,
  isResult,
  manual,
  nak,
  nakAfter,
  type Result,
  type ResultOf,
  reject,
  skip,
  term,
} from '../core/result.js'
export { BatchResultCountError, DrainedError, InvalidResultError, NoCodecError } from '../core/stream-errors.js'
// Handlers, middleware, messages
export { type ChainOptions, chain, chainWith, MiddlewareOrderError } from './chain.js'
export { type Codec, CodecRegistry, decodeTyped, jsonCodec } from './codec-registry.js'
export {
  BadCloudEventError,
  type CloudEvent,
  type CloudEventsOptions,
  cloudEventsCodec,
} from './codecs/cloud-events.js'
export {
  BadChangeEventError,
  type ChangeEvent,
  type ChangeOperation,
  type ChangeSource,
  DEBEZIUM_CONTENT_TYPE,
  debeziumCodec,
  imageOf,
  MissingImageError,
} from './codecs/debezium.js'
export {
  AttemptHeader,
  attempt,
  background,
  type Context,
  type ContextKey,
  contextKey,
  withAttempt,
} from './context.js'
export { type Decoded, decoded } from './decoded.js'
export { type Before, defineMiddleware, type MiddlewareParts, type Thrown } from './define-middleware.js'
export {
  AlreadySettledError,
  DeliveryLimitError,
  ForeignCursorError,
  ForeignMessageError,
  HandlerTimeoutError,
  InletClosedError,
  SubscriptionClosedError,
} from './errors.js'
export type { BatchEntry, BatchHandler, BatchStep, Handler, Middleware } from './handler.js'
export { type Header, Headers, type HeadersInit } from './headers.js'
// The engine
export { Hopper, type HopperState } from './hopper.js'
export type { HopperOptions, Logger } from './hopper-options.js'
export {
  CancelledError,
  HopperClosedError,
  LeaseLostError,
  SettleError,
  SettleTimeoutError,
  ShutdownDeadlineError,
} from './loop/errors.js'
export { MemInlet, type MemInletOptions } from './mem-inlet.js'
export { Ledger, type LedgerCounts, type LedgerEntry } from './mem-ledger.js'
export { type MemDelivery, type MemMessageSpec, memDelivery } from './mem-message.js'
export { type Cursor, type Message, type VendorToken, vendorToken } from './message.js'
export { type ContentTypeOptions, contentTypeValidator } from './middleware/content-type-validator.js'
export {
  type DeadLetterRecord,
  type DeadLetterStore,
  type DlqOptions,
  deadLetterToken,
  dlq,
  parkedMessageKey,
} from './middleware/dead-letter.js'
export {
  type Begun,
  DuplicateInFlightError,
  fromSeenStore,
  type IdempotencyOptions,
  type IdempotencyStore,
  idempotency,
  type SeenStore,
} from './middleware/idempotency.js'
export { defaultKey } from './middleware/idempotency-key.js'
export { type IdempotencyStoreOptions, idempotencyStore } from './middleware/idempotency-store.js'
export { KeyLeaseLostError } from './middleware/key-lease.js'
export { MemDeadLetter } from './middleware/mem-dead-letter.js'
export { type RetryMiddlewareOptions, retry } from './middleware/retry.js'
export { InvalidPayloadError, schema, type Validator } from './middleware/schema.js'
export { QueueInlet, type QueueInletOptions } from './queue-inlet.js'
export { pulledWork } from './queue-message.js'
export { QueueFetchError } from './queue-subscription.js'
export type { RunSummary } from './run-summary.js'
export type {
  Capabilities,
  CapabilityName,
  Inlet,
  NakSupport,
  SubscribeConfig,
  Subscription,
} from './subscription.js'
