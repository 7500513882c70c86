/** The door of streams: results, middleware, inlets and the Hopper that joins them. */

export { classLabel, type FailureClass } from '../core/failure/failure.js'
export {
  DecodeError,
  GuardRejection,
  InvalidForStateError,
  NonRetryableError,
  PoisonError,
  RetryAfterError,
  RetryableError,
  SchemaError,
} from '../core/failure/failure-errors.js'
export { isInvalidForState, isPoison, isRetryable } from '../core/failure/failure-predicates.js'
export { type Backoff, type BackoffOption, type ExponentialOptions, exponential } from '../core/retry/backoff.js'
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
} from '../core/stream/result.js'
export { BatchResultCountError, DrainedError, InvalidResultError, NoCodecError } from '../core/stream/stream-errors.js'
// What a handler says, and the errors that say it for you
export { type Clock, type Random, systemClock } from '../core/time/clock.js'
export {
  BadCloudEventError,
  type CloudEvent,
  type CloudEventsOptions,
  cloudEventsCodec,
} from './codecs/cloud-events.js'
export { type Codec, CodecRegistry, decodeTyped, jsonCodec } from './codecs/codec-registry.js'
export {
  BadChangeEventError,
  type ChangeOperation,
  type ChangeSource,
  DEBEZIUM_CONTENT_TYPE,
  type DebeziumChange,
  debeziumCodec,
  imageOf,
  MissingImageError,
} from './codecs/debezium.js'
export {
  AlreadySettledError,
  DeliveryLimitError,
  ForeignCursorError,
  ForeignMessageError,
  HandlerTimeoutError,
  InletClosedError,
  SubscriptionClosedError,
} from './errors.js'
// The engine
export { Hopper, type HopperState } from './hopper/hopper.js'
export type { HopperOptions, Logger } from './hopper/hopper-options.js'
export type { RunSummary } from './hopper/run-summary.js'
// For inlets of your own on a broker
export { BrokerCursor, type BrokerDelivery, BrokerMessage } from './inlets/broker/broker-message.js'
export {
  type Applied,
  type BrokerAdapter,
  BrokerSubscription,
  type BrokerSubscriptionOptions,
} from './inlets/broker/broker-subscription.js'
export { MemInlet, type MemInletOptions } from './inlets/memory/mem-inlet.js'
export { type MemDelivery, type MemMessageSpec, memDelivery } from './inlets/memory/mem-message.js'
export { type LedgerCounts, type LedgerEntry, SettlementLog } from './inlets/memory/settlement-log.js'
export { type MessageBodyOptions, messageBody } from './inlets/queue/message-body.js'
export { QueueInlet, type QueueInletOptions } from './inlets/queue/queue-inlet.js'
export { pulledWork } from './inlets/queue/queue-message.js'
export { QueueFetchError } from './inlets/queue/queue-subscription.js'
export type {
  Capabilities,
  CapabilityName,
  Inlet,
  NakSupport,
  SubscribeConfig,
  Subscription,
} from './inlets/subscription.js'
export {
  CancelledError,
  HopperClosedError,
  LeaseLostError,
  SettleError,
  SettleTimeoutError,
  ShutdownDeadlineError,
} from './loop/errors.js'
export {
  AttemptHeader,
  attempt,
  background,
  type Context,
  type ContextKey,
  contextKey,
  withAttempt,
} from './message/context.js'
export { type Decoded, decoded } from './message/decoded.js'
export { type Header, Headers, type HeadersInit } from './message/headers.js'
export { type Cursor, type Message, type VendorToken, vendorToken } from './message/message.js'
// Handlers, middleware, messages
export { type ChainOptions, chain, chainWith, MiddlewareOrderError } from './middleware/chain.js'
export { type ContentTypeOptions, contentTypeValidator } from './middleware/content-type-validator.js'
export {
  type DeadLetterRecord,
  type DeadLetterStore,
  type DlqOptions,
  deadLetteredMessageKey,
  deadLetterToken,
  dlq,
} from './middleware/dead-letter.js'
export { type Before, defineMiddleware, type MiddlewareParts, type Thrown } from './middleware/define-middleware.js'
export type { BatchEntry, BatchHandler, BatchStep, Handler, Middleware } from './middleware/handler.js'
export {
  type BeginResult,
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
export { queueDeadLetters } from './middleware/queue-dead-letters.js'
export { type RetryMiddlewareOptions, retry } from './middleware/retry.js'
export { InvalidPayloadError, schema, type Validator } from './middleware/schema.js'
export type { Outlet, OutletMessage } from './outlets/outlet.js'
