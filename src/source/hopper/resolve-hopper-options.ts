import { functionOption, OptionError, OptionTypeError } from '../../core/options.js'
import {
  callable,
  clock,
  flag,
  integer,
  number,
  oneOf,
  optional,
  readOptions,
  text,
  unchecked,
} from '../../core/read-options.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import { systemClock } from '../../core/time/clock.js'
import { CodecRegistry } from '../codecs/codec-registry.js'
import type { Subscription } from '../inlets/subscription.js'
import type { LoopOptions } from '../loop/loop-options.js'
import type { Message } from '../message/message.js'
import { checkOrder } from '../middleware/chain.js'
import type { Middleware } from '../middleware/handler.js'
import type { HopperOptions, Logger } from './hopper-options.js'

const read = (options: HopperOptions | undefined) =>
  readOptions('hopper', options, {
    name: text('hopper'),
    logger: resolveLogger,
    tracer: unchecked,
    meter: unchecked,
    clock: clock(systemClock),
    random: callable(Math.random),
    registry: unchecked,
    codec: unchecked,
    middleware: resolveMiddleware,
    allowAnyOrder: flag(false),
    concurrency: integer({ min: 1, default: 1 }),
    maxInFlight: optional(integer({ min: 1 })),
    maxLanes: integer({ min: 1, default: 4_096 }),
    laneOf: callable(defaultLaneOf),
    maxInFlightPerLane: optional(integer({ min: 1 })),
    ordering: oneOf(['relaxed', 'strict'], 'relaxed'),
    maxDeliveries: integer({ min: 1, default: 20, infinite: true }),
    deadlineMs: number({ min: 0, default: 30_000 }),
    abortGraceMs: number({ min: 0, default: 1_000 }),
    settle: unchecked,
    fetchRetry: unchecked,
    heartbeat: flag(true),
    lagIntervalMs: number({ min: 0, default: 15_000 }),
    batch: unchecked,
    handlerTimeoutMs: optional(number({ above: 0 })),
    maxOverrunMs: number({ min: 0, default: 60_000 }),
  })

type Given = ReturnType<typeof read>

/** Reads the options, and refuses those that contradict each other. */
export function resolveHopperOptions(options: HopperOptions | undefined) {
  const given = read(options)
  const { middleware, allowAnyOrder, maxDeliveries, ordering } = given
  const maxInFlight = given.maxInFlight ?? Math.max(64, 4 * given.concurrency)
  const batch = resolveBatch(given.batch, maxInFlight)
  if (!allowAnyOrder) checkOrder(middleware)
  const registry = resolveRegistry(given)
  for (const mw of middleware) {
    checkCap(mw, maxDeliveries)
    checkCodec(mw, registry)
  }
  if (given.batch !== undefined) checkBatchable({ middleware, ordering })
  const maxInFlightPerLane = given.maxInFlightPerLane ?? Math.ceil(maxInFlight / 2)
  return Object.freeze({ ...given, registry, maxInFlight, maxInFlightPerLane, batch, loop: resolveLoop(given) })
}

/** The options with nothing left open. */
export type ResolvedHopperOptions = ReturnType<typeof resolveHopperOptions>

function resolveLoop({ name, clock, random, deadlineMs, abortGraceMs, ...given }: Given): LoopOptions {
  const { maxConsecutiveFailures, ...settle } = readOptions('hopper.settle', given.settle, {
    timeoutMs: number({ above: 0, default: 5_000 }),
    attempts: integer({ min: 1, default: 3 }),
    baseMs: number({ min: 0, default: 50 }),
    maxConsecutiveFailures: integer({ min: 1, default: 20, infinite: true }),
  })
  const { attempts, baseMs, maxMs } = readOptions('hopper.fetchRetry', given.fetchRetry, {
    attempts: integer({ min: 1, default: 5, infinite: true }),
    baseMs: number({ min: 0, default: 100 }),
    maxMs: number({ min: 0, default: 10_000 }),
  })
  const delayMs = (failures: number) => doublingDelay(failures - 1, { baseMs, maxMs, jitter: 'full' }, random)
  return Object.freeze({
    name,
    clock,
    settle: Object.freeze({ ...settle, maxMs: 5_000 }),
    maxSettleFailures: maxConsecutiveFailures,
    fetchRetry: Object.freeze({ attempts, delayMs }),
    drainMs: deadlineMs,
    graceMs: abortGraceMs,
    givesBackWhatRuns: true,
    idlePollMs: 1_000,
  })
}

function resolveMiddleware(path: string, given: unknown = []): readonly Middleware[] {
  if (!Array.isArray(given)) throw new OptionTypeError(path, 'an array', given)
  const middleware: Middleware[] = given.filter((mw) => mw !== null && mw !== undefined)
  for (const [i, mw] of middleware.entries()) functionOption(`${path}[${i}]`, mw)
  return Object.freeze(middleware)
}

/** A logger that throws must not take a message, or the run, with it. */
function resolveLogger(path: string, value: unknown): Logger {
  if (value === undefined) return SILENT
  const given = value as Logger
  for (const level of ['warn', 'error'] as const) functionOption(`${path}.${level}`, given[level])
  const quietly =
    (level: 'warn' | 'error'): Logger['warn'] =>
    (message, facts) => {
      try {
        given[level](message, facts)
      } catch {
        // There is nothing left to report it to.
      }
    }
  return Object.freeze({ warn: quietly('warn'), error: quietly('error') })
}

const SILENT: Logger = Object.freeze({ warn: () => undefined, error: () => undefined })

function resolveBatch(given: HopperOptions['batch'], maxInFlight: number): Required<NonNullable<typeof given>> {
  const { size, maxWaitMs } = readOptions('hopper.batch', given ?? { size: 1 }, {
    size: integer({ min: 1 }),
    maxWaitMs: number({ default: 0 }),
  })
  if (given === undefined) return { size, maxWaitMs }
  if (maxWaitMs <= 0 && maxInFlight < size) {
    // Without a timer only a full batch runs, and it could never fill: the run would stall forever.
    throw new OptionError(
      'hopper.maxInFlight',
      `at least batch.size (${size}) unless batch.maxWaitMs is set`,
      maxInFlight,
    )
  }
  return Object.freeze({ size, maxWaitMs })
}

/** What cannot be kept in batch mode: better refused than silently skipped. */
export function checkBatchable(o: Pick<ResolvedHopperOptions, 'middleware' | 'ordering'>): void {
  const plain = o.middleware.find((mw) => mw.mapBatch === undefined)
  if (plain !== undefined) {
    throw new OptionError(
      'hopper.middleware',
      'of the kind that knows batches (with mapBatch, as defineMiddleware makes them) when batches are handled, ' +
        'or it would silently do nothing',
      plain.kind ?? (plain.name || 'a plain middleware'),
    )
  }
  if (o.ordering === 'strict') {
    throw new OptionError('hopper.ordering', "'relaxed' for batches: they are not tried again in place", 'strict')
  }
}

function resolveRegistry(given: Pick<Given, 'codec' | 'registry'>): CodecRegistry | undefined {
  if (given.codec !== undefined && given.registry !== undefined) {
    throw new OptionError('hopper.codec', 'absent when hopper.registry is given: register it there', 'both')
  }
  if (given.registry !== undefined && typeof given.registry?.decode !== 'function') {
    throw new OptionTypeError('hopper.registry', 'a CodecRegistry', given.registry)
  }
  return given.codec === undefined ? given.registry : new CodecRegistry().setDefault(given.codec)
}

function checkCap(mw: Middleware, maxDeliveries: number): void {
  if (mw.maxAttempts === undefined || mw.maxAttempts <= maxDeliveries) return
  throw new OptionError(
    'retry.maxAttempts',
    `at most hopper.maxDeliveries (${maxDeliveries}), or the delivery limit ends a message before retry does`,
    mw.maxAttempts,
  )
}

/** Two messages under one key would be one: the second would never run. */
export function checkIdentity(middleware: readonly Middleware[], sub: Subscription): void {
  const needy = middleware.find((mw) => mw.needsIdentity === true)
  if (needy === undefined || sub.capability('identity') !== undefined) return
  throw new OptionError(
    `${needy.kind ?? needy.name}.keyOf`,
    'given for this subscription: its messages have no identity of their own that survives a redelivery and a restart, so the ' +
      'default key would take new messages for old ones. Return a key that the producer gave, such as ' +
      "(message) => message.headers.get('message-id'), or use the queue of a Millrace backend as it is (a spread loses its ids)",
    undefined,
  )
}

function checkCodec(mw: Middleware, registry: CodecRegistry | undefined): void {
  if (mw.needsCodec !== true || registry !== undefined) return
  throw new OptionError(
    'hopper.codec',
    `given (or hopper.registry), because the middleware "${mw.kind ?? mw.name}" reads decoded payloads`,
    'neither',
  )
}

const keyText = new TextDecoder('latin1')

/** Its partition, else its key, else one lane for all the rest. */
export function defaultLaneOf(message: Message): string {
  if (message.partitionKey !== '') return message.partitionKey
  return message.key === null || message.key.length === 0 ? '' : keyText.decode(message.key)
}
