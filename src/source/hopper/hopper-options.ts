import type { Meter, Tracer } from '@opentelemetry/api'
import type { Clock, Random } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Codec, CodecRegistry } from '../codecs/codec-registry.js'
import type { Message } from '../message/message.js'
import type { Middleware } from '../middleware/handler.js'

/** Where a hopper says what a person should know. Each call gets a sentence and the facts. */
export interface Logger {
  warn(message: string, facts?: Readonly<Record<string, unknown>>): void
  error(message: string, facts?: Readonly<Record<string, unknown>>): void
}

/** Options of a {@link Hopper}. All optional; durations in ms. */
export interface HopperOptions {
  /** Names it in spans, metrics and dead letters. Default `'hopper'`. */
  readonly name?: string
  readonly logger?: Logger
  /** OpenTelemetry. Default: whatever SDK the program registered, nothing otherwise. */
  readonly tracer?: Tracer
  readonly meter?: Meter
  readonly clock?: Clock
  readonly random?: Random
  /** Decodes payloads: a registry by content type, or one codec for all. At most one of the two. */
  readonly registry?: CodecRegistry
  readonly codec?: Codec
  /** Outermost first: `dlq, retry, idempotency, schema`. */
  readonly middleware?: readonly (Middleware | null | undefined)[]
  /** Skips the check of that order. Default false. */
  readonly allowAnyOrder?: boolean
  /** How many handlers run at the same time. Default 1: strict arrival order over everything, whatever the keys. */
  readonly concurrency?: number
  /** Fetched and not yet settled. Default `max(64, 4 * concurrency)`. */
  readonly maxInFlight?: number
  /** How many keys have their own lane at the same time; beyond it new keys share lanes. Default 4096. */
  readonly maxLanes?: number
  /** The ordering domain of a message. Default: its partition, else its key, else one lane for all the rest. */
  readonly laneOf?: (message: Message) => string
  /** Where partitions can be paused: how many messages one may hold. Default half of `maxInFlight`. */
  readonly maxInFlightPerLane?: number
  /**
   * `'relaxed'` hands a nak to the backend, and later messages of that key may overtake it. `'strict'` keeps the lane
   * waiting and tries again in place. Default `'relaxed'`.
   */
  readonly ordering?: 'relaxed' | 'strict'
  /** A message delivered more often is terminated as poison: it is what stops one that ends its consumer. Default 20. */
  readonly maxDeliveries?: number
  /** How long running handlers may go on after a stop before their signal aborts. Default 30 000. */
  readonly deadlineMs?: Ms
  /** How long they may go on after that. Default 1000. */
  readonly abortGraceMs?: Ms
  /** Settling: each try's time, tries, first wait, and how many failures in a row end the run. 5000, 3, 50, 20. */
  readonly settle?: {
    readonly timeoutMs?: Ms
    readonly attempts?: number
    readonly baseMs?: Ms
    readonly maxConsecutiveFailures?: number
  }
  /** Fetching again after a transient error: tries in a row, first and longest wait. 5, 100, 10 000; full jitter. */
  readonly fetchRetry?: { readonly attempts?: number; readonly baseMs?: Ms; readonly maxMs?: Ms }
  /** Extends leases while messages are held, where the subscription can. Default true. */
  readonly heartbeat?: boolean
  /** How often the lag is asked for. Default 15 000; 0 never. */
  readonly lagIntervalMs?: Ms
  /** For `runBatch`: messages per call, and how long the first may wait for the rest (0: until the batch is full). */
  readonly batch?: { readonly size: number; readonly maxWaitMs?: Ms }
  /** The signal of a handler that takes longer aborts, and its message is delivered again once it has ended. Default: no limit. */
  readonly handlerTimeoutMs?: Ms
  /**
   * How long the lane of a handler that outlives `handlerTimeoutMs` and ignores its signal stays taken, waiting for its end.
   * Beyond it the lane goes on, and its order is lost: it is logged and counted in
   * `source.overruns_abandoned`. Default 60 000.
   */
  readonly maxOverrunMs?: Ms
}
