import type { Tracer } from '@opentelemetry/api'
import { type Clock, clockFrom, type Random, systemClock } from '../core/clock.js'
import { defaultCodec, type JsonCodec } from '../core/codec.js'
import type { Doer } from '../core/doer/doer.js'
import { newId } from '../core/ids.js'
import { createMetrics, type Metrics } from '../core/metrics.js'
import {
  booleanOption,
  functionOption,
  integerOption,
  numberOption,
  OptionError,
  optionsObject,
  stringOption,
} from '../core/options.js'
import { type RetryOptions, resolveRetryOptions } from '../core/retry.js'
import { tell } from '../core/tell.js'
import type { Ms } from '../core/time.js'
import { warn, warnOnce } from '../core/warn-once.js'
import type { Backend, PubSub, Queue, Store } from '../ports/ports.js'
import { isClosedBackend } from './closed-backend.js'
import type { WorkEvent } from './events.js'
import type { Retention } from './settle.js'
import { UnansweredError } from './unanswered.js'
import type { AnyWorkBuilder, WorkRetry, WorkState } from './work.js'
import { checkDoer, checkRetry, concurrencyOption, type FailureClassifier } from './work-options.js'

/** Where an error that is nobody's job failure came up: while fetching and routing, or while recording an outcome. */
export type ErrorPhase = 'queue' | 'commit'

/** What `backpressure` is told before every look at the queues. */
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

/** How far behind a process is, as `onBacklog` is told. */
export interface WorkBacklogInfo {
  readonly active: number
  readonly backedUpForMs: Ms
  readonly queued: number | undefined
}

/** A group that ended while nobody waited for it. */
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
  /** Retry policy of every type that does not say otherwise. */
  readonly retry?: WorkRetry
  /** Tries each load-bearing call to a plain port again before it counts as failed. */
  readonly portRetry?: Omit<RetryOptions<unknown>, 'errorResult'>
  /** How many handlers of this process run at once. Default 32. For a choice of order, or no limit, give a `doer` instead. */
  readonly concurrency?: number
  /** Decides how much runs at once and what is next, instead of `concurrency`. `unlimitedDoer()` sets no limit. */
  readonly doer?: Doer
  /** The longest an idle worker sleeps without looking: the net under the wake-ups. Default 1000. */
  readonly pollInterval?: Ms
  /** Asked before every look: how long to pause first. 0 or nothing goes on. */
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
  readonly logWith?: LogWith
  readonly logContext?: (input: unknown, type: string) => Readonly<Record<string, unknown>> | undefined
  /** Hears of each item, once what happened is stored. It is called and not awaited: give what is slow a bounded buffer of its own. */
  readonly onEvent?: (event: WorkEvent) => void
  /**
   * Hears of errors that are not a job's own failure. Without it each of them is a process warning, once
   * (`MILLRACE_WORK_ERROR`; `ENQUEUES_UNANSWERED` each time), and so are enqueues that failed and were not awaited, with their number (`MILLRACE_ENQUEUE_LOST`).
   */
  readonly onError?: (error: unknown, phase: ErrorPhase) => void
  readonly onBacklog?: (info: WorkBacklogInfo) => void
  readonly backlogAfterMs?: Ms
  readonly backlogEveryMs?: Ms
  readonly onFailure?: FailureClassifier
  /** A queue of dead letters to feed back when there is nothing else to do. */
  readonly dlq?: Queue
  /** How many at a time. Default 10; 0 never. */
  readonly redriveCount?: number
  /** How often one item is fed back at most. Default 5. */
  readonly maxRedrives?: number
  /** `false` leaves an item to another instance. */
  readonly accept?: (info: WorkAcceptInfo) => boolean
  /** Hears of groups that ended while nobody waited for them. */
  readonly unhandledWorkGroup?: (info: UnhandledWorkGroupInfo) => void | Promise<void>
  readonly metrics?: Metrics
  readonly strictReturn?: boolean
  readonly generateId?: () => string
  /** Starts at once. Default true. */
  readonly autoStart?: boolean
  readonly now?: () => number
  /** Time and timers; wins over `now`. */
  readonly clock?: Clock
  readonly random?: Random
  /** Captures the W3C trace context of whoever enqueues. */
  readonly trace?: () => { readonly traceparent: string; readonly tracestate?: string } | undefined
  /** Makes the spans of enqueues and runs. Default: that of the OpenTelemetry SDK which the program registers, if any. */
  readonly tracer?: Tracer
  /** How long successes are kept. Default 24 hours. */
  readonly keepSuccess?: Ms
  /** How long dead items are kept. Default 30 days. */
  readonly keepDead?: Ms
  /**
   * Most enqueues that wait to be sent to the backend; beyond, they reject with `BUFFER_FULL`. `enqueueMany` waits for room
   * instead. Default 10 000.
   */
  readonly maxUnsent?: number
  /**
   * How long `stop` lets running work go on; then signals fire, and handlers have 500 ms to obey. For as long, and at least 5 s, it
   * waits for the backend to answer what was enqueued. Default 5000.
   */
  readonly stopDrain?: Ms
  /**
   * Dead-letters an item (ending `unroutable`) that has been ready for this long while no live worker handled its type, as
   * far as this system has seen: the time starts again with the system, and whenever a worker handles the type. Choose it longer
   * than your longest deploy or outage. Default: such items wait until a worker handles them, their deadline passes, or they are
   * cancelled. Only on backends that know their workers: memory, SQLite, Postgres and Redis.
   */
  readonly unknownTypeTimeout?: Ms
  /** How many states of ended work `list()` remembers where the backend cannot tell. Default 10 000. */
  readonly maxStates?: number
  /** Keeps the process alive for as long as the system runs (true) or never (false). Default: while work is owed. */
  readonly keepAlive?: boolean
  readonly work?: readonly AnyWorkBuilder[]
}

const NAMES = [
  'backend',
  'queue',
  'pubsub',
  'store',
  'retry',
  'portRetry',
  'concurrency',
  'doer',
  'pollInterval',
  'backpressure',
  'visibility',
  'heartbeat',
  'prefix',
  'codec',
  'logWith',
  'logContext',
  'onEvent',
  'onError',
  'onBacklog',
  'backlogAfterMs',
  'backlogEveryMs',
  'onFailure',
  'dlq',
  'redriveCount',
  'maxRedrives',
  'accept',
  'unhandledWorkGroup',
  'metrics',
  'strictReturn',
  'generateId',
  'autoStart',
  'now',
  'clock',
  'random',
  'trace',
  'tracer',
  'keepSuccess',
  'keepDead',
  'maxUnsent',
  'stopDrain',
  'unknownTypeTimeout',
  'maxStates',
  'keepAlive',
  'work',
] as const satisfies readonly (keyof WorkSystemOptions)[]

/** The options with nothing left open that has a default. */
export interface ResolvedSystemOptions {
  readonly given: WorkSystemOptions
  readonly clock: Clock
  readonly random: Random
  /** The user's own doer. Undefined: one with `concurrency` places. */
  readonly doer: Doer | undefined
  /** Reports what is no job's own failure. It never throws. */
  readonly onError: (error: unknown, phase: ErrorPhase) => void
  readonly concurrency: number
  readonly pollInterval: Ms
  readonly visibility: Ms
  readonly heartbeat: Ms
  readonly prefix: string
  readonly codec: JsonCodec
  readonly metrics: Metrics
  readonly retry: WorkRetry | undefined
  readonly newId: () => string
  readonly redriveCount: number
  readonly maxRedrives: number
  readonly strictReturn: boolean
  readonly keep: Retention
  readonly maxUnsent: number
  readonly stopDrain: Ms
  /** Undefined: never. */
  readonly unknownTypeTimeout: Ms | undefined
  readonly maxStates: number
}

const DAY_MS = 86_400_000

/** A lease that is extended no sooner than it ends is lost each time, and its work runs again and again. */
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

/** What a listener throws is its own. Without one, a process warning says each trouble once. */
function reporter(onError: WorkSystemOptions['onError']): ResolvedSystemOptions['onError'] {
  if (onError !== undefined) return (error, phase) => tell(() => onError(error, phase))
  return (error) => {
    // Whoever closed the backend knows.
    if (isClosedBackend(error)) return
    // Each of these is another loss, though it may read like the one before.
    const say = error instanceof UnansweredError ? warn : warnOnce
    say('MILLRACE_WORK_ERROR', error, 'createWork({ onError })')
  }
}

export function resolveSystemOptions(options: WorkSystemOptions | undefined): ResolvedSystemOptions {
  const given = optionsObject('createWork', options, NAMES)
  checkRetry('createWork.retry', given.retry)
  if (given.portRetry !== undefined) resolveRetryOptions('createWork.portRetry', given.portRetry)
  for (const name of ['onEvent', 'onError', 'onBacklog', 'onFailure', 'accept', 'backpressure', 'logWith'] as const) {
    if (given[name] !== undefined) functionOption(`createWork.${name}`, given[name])
  }
  for (const name of ['autoStart', 'keepAlive'] as const) {
    if (given[name] !== undefined) booleanOption(`createWork.${name}`, given[name])
  }
  checkDoer('createWork.doer', given.doer)
  const ms = (name: keyof WorkSystemOptions, fallback: Ms, min = 0) =>
    numberOption(`createWork.${name}`, given[name], { default: fallback, min })
  const visibility = numberOption('createWork.visibility', given.visibility, { default: 30_000, above: 0 })
  return Object.freeze({
    given,
    clock:
      given.clock ?? (given.now === undefined ? systemClock : clockFrom(functionOption('createWork.now', given.now))),
    random: functionOption('createWork.random', given.random, Math.random),
    doer: given.doer,
    onError: reporter(given.onError),
    concurrency: concurrencyOption('createWork', given, 32),
    pollInterval: numberOption('createWork.pollInterval', given.pollInterval, { default: 1_000, above: 0 }),
    visibility,
    heartbeat: heartbeatOption(given.heartbeat, visibility),
    prefix: given.prefix === '' ? '' : stringOption('createWork.prefix', given.prefix, 'work:'),
    codec: given.codec ?? defaultCodec,
    metrics: given.metrics ?? createMetrics(),
    // A copy: what the caller does with his object afterwards does not change the policy.
    retry: given.retry === undefined ? undefined : Object.freeze({ ...given.retry }),
    newId: functionOption('createWork.generateId', given.generateId, newId),
    redriveCount: integerOption('createWork.redriveCount', given.redriveCount, { min: 0, default: 10 }),
    maxRedrives: integerOption('createWork.maxRedrives', given.maxRedrives, { min: 0, default: 5, infinite: true }),
    strictReturn: booleanOption('createWork.strictReturn', given.strictReturn, true),
    keep: Object.freeze({ successMs: ms('keepSuccess', DAY_MS), deadMs: ms('keepDead', 30 * DAY_MS) }),
    maxUnsent: integerOption('createWork.maxUnsent', given.maxUnsent, { min: 1, default: 10_000 }),
    stopDrain: ms('stopDrain', 5_000),
    unknownTypeTimeout:
      given.unknownTypeTimeout === undefined
        ? undefined
        : numberOption('createWork.unknownTypeTimeout', given.unknownTypeTimeout, { default: 0, above: 0 }),
    maxStates: integerOption('createWork.maxStates', given.maxStates, { min: 1, default: 10_000 }),
  })
}
