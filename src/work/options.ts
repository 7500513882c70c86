import type { Tracer } from '@opentelemetry/api'
import { callObserver } from '../core/call-observer.js'
import { defaultCodec, type JsonCodec } from '../core/codec/codec.js'
import type { Doer } from '../core/doer/doer.js'
import { MillraceError } from '../core/error.js'
import { newId } from '../core/ids.js'
import { createMetrics, type Metrics } from '../core/metrics/metrics.js'
import { numberOption, OptionError } from '../core/options.js'
import { warn, warnOnce } from '../core/process/warn-once.js'
import {
  callable,
  flag,
  integer,
  keyPrefix,
  listener,
  number,
  optional,
  readOptions,
  unchecked,
} from '../core/read-options.js'
import { type RetryOptions, resolveRetryOptions } from '../core/retry/retry.js'
import { type Redact, type Redacted, redactedBy } from '../core/text/redact.js'
import { type Clock, clockFrom, type Random, systemClock } from '../core/time/clock.js'
import type { Ms } from '../core/time/time.js'
import { KEEP_COMPLETED_MS, KEEP_DEAD_MS } from '../ports/limits.js'
import type { Backend, PubSub, Queue, Store } from '../ports/ports.js'
import type { AnyWorkType, WorkRetry, WorkState } from './define/work.js'
import { checkDoer, checkRetry, concurrencyOption, type FailureClassifier } from './define/work-options.js'
import { UnansweredError } from './enqueue/unanswered-enqueues.js'
import type { WorkEvent } from './observe/events.js'
import { logOption, WorkLog, type WorkLogger } from './observe/log.js'
import type { Retention } from './settle/settle.js'

/** Where an error came up that is not the failure of an item: while claiming and routing, or while writing an outcome. */
export type ErrorPhase = 'queue' | 'commit'

/** What `backpressure` gets before every claim. */
export interface BackpressureContext {
  readonly metrics: Metrics
  readonly active: number
}

/** The item that `accept` is asked about. */
export interface WorkAcceptInfo {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly attempt: number
  readonly input: unknown
}

/** How far behind a process is, as `onBacklog` gets it. */
export interface WorkBacklogInfo {
  readonly active: number
  readonly backedUpForMs: Ms
  readonly queued: number | undefined
}

/** A group that closed while no caller waited for it. */
export interface UnhandledWorkGroupInfo {
  readonly groupId: string
  readonly lastResult: unknown
  readonly states: readonly WorkState[]
}

/** Runs a function with a log context around it. */
export type LogWith = <T>(context: Readonly<Record<string, unknown>>, fn: () => T) => T

/** Options of `createWork`. All optional; durations in ms. */
export interface WorkSystemOptions {
  /** The three ports, and whatever else the backend can do. The ports below win over its own. */
  readonly backend?: Backend
  readonly queue?: Queue
  readonly pubsub?: PubSub
  readonly store?: Store
  /** Retry policy of every type that has none of its own. */
  readonly retry?: WorkRetry
  /** Repeats each essential call to a plain port before it counts as failed. */
  readonly portRetry?: Omit<RetryOptions<unknown>, 'errorResult'>
  /** How many handlers of this process run at the same time. Default 32. For another order, or no limit, give a `doer`. */
  readonly concurrency?: number
  /** Decides how much runs at the same time and what is next, instead of `concurrency`. `unlimitedDoer()` sets no limit. */
  readonly doer?: Doer
  /** How often an idle worker polls: the fallback for lost wake-ups. Default 1000. */
  readonly pollInterval?: Ms
  /** Called before every claim: how long to pause first. 0 or nothing: do not pause. */
  readonly backpressure?: (
    context: BackpressureContext,
  ) => number | undefined | void | Promise<number | undefined | void>
  /** How long a lease lives without a heartbeat. Default 30 000. */
  readonly visibility?: Ms
  /** How often leases are extended: less than `visibility`. Default a third of it. */
  readonly heartbeat?: Ms
  /** Of every key in the store. Default `'work:'`. */
  readonly prefix?: string
  readonly codec?: JsonCodec
  /**
   * One line for each failed run, dead item, lost lease, start and stop, at most 20 a second and then their number. `true`: to
   * stderr; a logger with `info`, `warn` and `error`, such as pino: to it; `false`: none. Default: warnings and errors to stderr,
   * unless there is an `onEvent`, `NODE_ENV` is `test`, or a test moves the clock.
   */
  readonly log?: boolean | WorkLogger
  /** What a log may show of errors, and of bodies that are no items: it gets the text and returns the one to write. */
  readonly redact?: Redact
  readonly logWith?: LogWith
  readonly logContext?: (input: unknown, type: string) => Readonly<Record<string, unknown>> | undefined
  /** Called for each item once what happened is stored. It is not awaited: give a slow listener its own bounded buffer. */
  readonly onEvent?: (event: WorkEvent) => void
  /**
   * Called for errors that are not the failure of an item. Without it, each of them is a line of the `log` that was given, else a
   * process warning, once
   * (`MILLRACE_WORK_ERROR`; `ENQUEUES_UNANSWERED` each time). So are enqueues that failed and were not awaited, with their number
   * (`MILLRACE_ENQUEUE_LOST`).
   */
  readonly onError?: (error: unknown, phase: ErrorPhase) => void
  readonly onBacklog?: (info: WorkBacklogInfo) => void
  readonly backlogAfterMs?: Ms
  readonly backlogEveryMs?: Ms
  readonly onFailure?: FailureClassifier
  /** A dead-letter queue whose items are redriven when there is nothing else to do. */
  readonly dlq?: Queue
  /** How many at a time. Default 10; 0 never. */
  readonly redriveCount?: number
  /** How often one item is redriven at most. Default 5. */
  readonly maxRedrives?: number
  /** `false` leaves an item to another instance. */
  readonly accept?: (info: WorkAcceptInfo) => boolean
  /** Called for groups that closed while no caller waited for them. */
  readonly unhandledWorkGroup?: (info: UnhandledWorkGroupInfo) => void | Promise<void>
  readonly metrics?: Metrics
  readonly strictReturn?: boolean
  readonly generateId?: () => string
  /**
   * Starts working immediately. Default true. `false`: it adds work, and claims none until `start()`, or `runUntilIdle()`, is called;
   * for web processes that only add, and for functions that must end.
   */
  readonly autoStart?: boolean
  readonly now?: () => number
  /** Time and timers; wins over `now`. */
  readonly clock?: Clock
  readonly random?: Random
  /** Returns the W3C trace context of the caller that enqueues. */
  readonly trace?: () => { readonly traceparent: string; readonly tracestate?: string } | undefined
  /** Makes the spans of enqueues and runs. Default: the tracer of the OpenTelemetry SDK that the program registers, if any. */
  readonly tracer?: Tracer
  /** How long completed items are kept. Default 24 hours. */
  readonly keepCompleted?: Ms
  /** How long dead items are kept. Default 30 days. */
  readonly keepDead?: Ms
  /**
   * Most enqueues that wait to be sent to the backend; beyond, they reject with `BUFFER_FULL`. `enqueueMany` waits for room
   * instead. Default 10 000.
   */
  readonly maxUnsent?: number
  /**
   * How long `stop` lets running work go on; then signals fire, and handlers have 500 ms to obey. For the same time, but at least
   * 5 s, it waits for the backend to answer enqueues. Default 5000.
   */
  readonly stopDrain?: Ms
  /**
   * Dead-letters an item (ending `unroutable`) that has been ready for this long while no live worker handled its type, as
   * far as this system has seen: the time starts again with the system, and whenever a worker handles the type. Choose it longer
   * than your longest deploy or outage. Default: such items wait until a worker handles them, their deadline passes, or they are
   * cancelled. Only on backends that know their workers: memory, SQLite, Postgres and Redis.
   */
  readonly unknownTypeTimeout?: Ms
  /** How many states `list()` remembers where the backend cannot list. Default 10 000. */
  readonly maxStates?: number
  /** Keeps the process alive while the system runs (true) or never (false). Default: while it holds work. */
  readonly keepAlive?: boolean
  readonly work?: readonly AnyWorkType[]
}

/** Refuses a heartbeat that would come after the lease has lapsed: all work would run again and again. */
function heartbeatOption(given: unknown, visibility: Ms): Ms {
  const heartbeat = numberOption('createWork.heartbeat', given, {
    default: Math.max(Math.min(1, visibility / 2), Math.floor(visibility / 3)),
    above: 0,
  })
  if (heartbeat >= visibility) {
    throw new OptionError('createWork.heartbeat', `less than visibility, which is ${visibility}`, heartbeat)
  }
  return heartbeat
}

/** Calls the listener, whose errors are ignored. Without one, each error is a line of the log, or a process warning, once. */
function reporter(onError: WorkSystemOptions['onError'], log: WorkLog): (error: unknown, phase: ErrorPhase) => void {
  if (onError !== undefined) return (error, phase) => callObserver(() => onError(error, phase))
  return (error, phase) => {
    // The caller that closed the backend knows.
    if (isClosedBackend(error)) return
    if (log.isGiven) {
      log.failed(error, phase)
      return
    }
    // Each of these is another loss, though its text may be the same.
    const report = error instanceof UnansweredError ? warn : warnOnce
    report('MILLRACE_WORK_ERROR', error, 'createWork({ onError })')
  }
}

const read = (options: WorkSystemOptions | undefined) =>
  readOptions('createWork', options, {
    backend: unchecked,
    queue: unchecked,
    pubsub: unchecked,
    store: unchecked,
    retry: (path: string, given: unknown) => {
      const retry = given as WorkRetry | undefined
      checkRetry(path, retry)
      // A copy: later changes to the caller's object do not change the policy.
      return retry === undefined ? undefined : Object.freeze({ ...retry })
    },
    portRetry: (path: string, given: unknown) => {
      if (given !== undefined) resolveRetryOptions(path, given as RetryOptions<unknown>)
    },
    concurrency: unchecked,
    doer: (path: string, given: unknown) => {
      checkDoer(path, given)
      return given as Doer | undefined
    },
    pollInterval: number({ default: 1_000, above: 0 }),
    backpressure: listener,
    visibility: number({ default: 30_000, above: 0 }),
    heartbeat: unchecked,
    prefix: keyPrefix('work:'),
    codec: unchecked,
    log: unchecked,
    redact: listener,
    logWith: listener,
    logContext: unchecked,
    onEvent: listener,
    onError: listener,
    onBacklog: listener,
    backlogAfterMs: unchecked,
    backlogEveryMs: unchecked,
    onFailure: listener,
    dlq: unchecked,
    redriveCount: integer({ min: 0, default: 10 }),
    maxRedrives: integer({ min: 0, default: 5, infinite: true }),
    accept: listener,
    unhandledWorkGroup: unchecked,
    metrics: unchecked,
    strictReturn: flag(true),
    generateId: callable(newId),
    autoStart: flag(true),
    now: listener,
    clock: unchecked,
    random: callable(Math.random),
    trace: unchecked,
    tracer: unchecked,
    keepCompleted: number({ default: KEEP_COMPLETED_MS, min: 0 }),
    keepDead: number({ default: KEEP_DEAD_MS, min: 0 }),
    maxUnsent: integer({ min: 1, default: 10_000 }),
    stopDrain: number({ default: 5_000, min: 0 }),
    unknownTypeTimeout: optional(number({ above: 0 })),
    maxStates: integer({ min: 1, default: 10_000 }),
    keepAlive: optional(flag()),
    work: unchecked,
  })

/** The options with their defaults, and as they were `given`. */
export function resolveSystemOptions(options: WorkSystemOptions | undefined) {
  const o = read(options)
  const clock = o.clock ?? (o.now === undefined ? systemClock : clockFrom(o.now))
  /** Its id among the workers of the fleet. */
  const workerId = o.generateId()
  const redacted: Redacted = o.redact === undefined ? (_, value) => value : redactedBy(o.redact)
  const log = new WorkLog(logOption(o.log, { hasListener: o.onEvent !== undefined, clock }), clock, redacted, workerId)
  const keep: Retention = Object.freeze({ completedMs: o.keepCompleted, deadMs: o.keepDead })
  return Object.freeze({
    ...o,
    given: options ?? {},
    clock,
    workerId,
    redacted,
    log,
    keep,
    /** Reports an error that is not the failure of an item. It never throws. */
    onError: reporter(o.onError, log),
    concurrency: concurrencyOption('createWork', options ?? {}, 32),
    heartbeat: heartbeatOption(o.heartbeat, o.visibility),
    codec: o.codec ?? defaultCodec,
    metrics: o.metrics ?? createMetrics(),
    newId: o.generateId,
  })
}

export type ResolvedSystemOptions = ReturnType<typeof resolveSystemOptions>

/** Whether the backend was closed: no repetition will be answered. */
export function isClosedBackend(error: unknown): boolean {
  return error instanceof MillraceError && /(^|_)CLOSED$/.test(error.code)
}
