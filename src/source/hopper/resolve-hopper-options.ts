import {
  booleanOption,
  functionOption,
  integerOption,
  numberOption,
  OptionError,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import { CodecRegistry } from '../codecs/codec-registry.js'
import type { Subscription } from '../inlets/subscription.js'
import type { LoopOptions } from '../loop/loop-options.js'
import type { Message } from '../message/message.js'
import { checkOrder } from '../middleware/chain.js'
import type { Middleware } from '../middleware/handler.js'
import { ownClock } from '../middleware/middleware-host.js'
import type { HopperOptions, Logger, ResolvedHopperOptions } from './hopper-options.js'

const NAMES = [
  'name',
  'logger',
  'tracer',
  'meter',
  'clock',
  'random',
  'registry',
  'codec',
  'middleware',
  'allowAnyOrder',
  'concurrency',
  'maxInFlight',
  'maxLanes',
  'laneOf',
  'maxInFlightPerLane',
  'ordering',
  'maxDeliveries',
  'deadlineMs',
  'abortGraceMs',
  'settle',
  'fetchRetry',
  'heartbeat',
  'lagIntervalMs',
  'batch',
  'handlerTimeoutMs',
  'maxOverrunMs',
] as const satisfies readonly (keyof HopperOptions)[]

export function resolveHopperOptions(options: HopperOptions | undefined): ResolvedHopperOptions {
  const given = optionsObject('hopper', options, NAMES)
  const clock = ownClock('hopper.clock', given.clock) ?? systemClock
  const name = stringOption('hopper.name', given.name, 'hopper')
  const concurrency = integerOption('hopper.concurrency', given.concurrency, { min: 1, default: 1 })
  const maxInFlight = integerOption('hopper.maxInFlight', given.maxInFlight, {
    min: 1,
    default: Math.max(64, 4 * concurrency),
  })
  const batch = resolveBatch(given.batch, maxInFlight)
  const maxDeliveries = integerOption('hopper.maxDeliveries', given.maxDeliveries, {
    min: 1,
    default: 20,
    infinite: true,
  })
  const middleware = resolveMiddleware(given.middleware)
  const allowAnyOrder = booleanOption('hopper.allowAnyOrder', given.allowAnyOrder, false)
  if (!allowAnyOrder) checkOrder(middleware)
  const registry = resolveRegistry(given)
  for (const mw of middleware) {
    checkCap(mw, maxDeliveries)
    checkCodec(mw, registry)
  }
  const ordering = oneOfOption('hopper.ordering', given.ordering, ['relaxed', 'strict'], 'relaxed')
  if (given.batch !== undefined) checkBatchable({ middleware, ordering })
  return Object.freeze({
    name,
    logger: resolveLogger(given.logger),
    tracer: given.tracer,
    meter: given.meter,
    registry,
    middleware,
    allowAnyOrder,
    concurrency,
    maxInFlight,
    maxLanes: integerOption('hopper.maxLanes', given.maxLanes, { min: 1, default: 4_096 }),
    laneOf: functionOption('hopper.laneOf', given.laneOf, defaultLaneOf),
    maxInFlightPerLane: integerOption('hopper.maxInFlightPerLane', given.maxInFlightPerLane, {
      min: 1,
      default: Math.ceil(maxInFlight / 2),
    }),
    ordering,
    maxDeliveries,
    heartbeat: booleanOption('hopper.heartbeat', given.heartbeat, true),
    lagIntervalMs: numberOption('hopper.lagIntervalMs', given.lagIntervalMs, { min: 0, default: 15_000 }),
    batch,
    handlerTimeoutMs:
      given.handlerTimeoutMs === undefined
        ? undefined
        : numberOption('hopper.handlerTimeoutMs', given.handlerTimeoutMs, { above: 0 }),
    maxOverrunMs: numberOption('hopper.maxOverrunMs', given.maxOverrunMs, { min: 0, default: 60_000 }),
    loop: resolveLoop(given, name, clock),
  })
}

function resolveLoop(given: HopperOptions, name: string, clock: Clock): LoopOptions {
  const settle = optionsObject('hopper.settle', given.settle, [
    'timeoutMs',
    'attempts',
    'baseMs',
    'maxConsecutiveFailures',
  ])
  const fetchRetry = optionsObject('hopper.fetchRetry', given.fetchRetry, ['attempts', 'baseMs', 'maxMs'])
  const random = functionOption('hopper.random', given.random, Math.random)
  const fetchBaseMs = numberOption('hopper.fetchRetry.baseMs', fetchRetry.baseMs, { min: 0, default: 100 })
  const fetchMaxMs = numberOption('hopper.fetchRetry.maxMs', fetchRetry.maxMs, { min: 0, default: 10_000 })
  return Object.freeze({
    name,
    clock,
    settle: Object.freeze({
      attempts: integerOption('hopper.settle.attempts', settle.attempts, { min: 1, default: 3 }),
      baseMs: numberOption('hopper.settle.baseMs', settle.baseMs, { min: 0, default: 50 }),
      maxMs: 5_000,
      timeoutMs: numberOption('hopper.settle.timeoutMs', settle.timeoutMs, { above: 0, default: 5_000 }),
    }),
    maxSettleFailures: integerOption('hopper.settle.maxConsecutiveFailures', settle.maxConsecutiveFailures, {
      min: 1,
      default: 20,
      infinite: true,
    }),
    fetchRetry: Object.freeze({
      attempts: integerOption('hopper.fetchRetry.attempts', fetchRetry.attempts, {
        min: 1,
        default: 5,
        infinite: true,
      }),
      delayMs: (failures: number) =>
        doublingDelay(failures - 1, { baseMs: fetchBaseMs, maxMs: fetchMaxMs, jitter: 'full' }, random),
    }),
    drainMs: numberOption('hopper.deadlineMs', given.deadlineMs, { min: 0, default: 30_000 }),
    graceMs: numberOption('hopper.abortGraceMs', given.abortGraceMs, { min: 0, default: 1_000 }),
    givesBackWhatRuns: true,
    idlePollMs: 1_000,
  })
}

function resolveMiddleware(given: HopperOptions['middleware']): readonly Middleware[] {
  if (given !== undefined && !Array.isArray(given)) throw new OptionTypeError('hopper.middleware', 'an array', given)
  const middleware = (given ?? []).filter((mw) => mw !== null && mw !== undefined)
  for (const [i, mw] of middleware.entries()) functionOption(`hopper.middleware[${i}]`, mw)
  return Object.freeze(middleware)
}

/** A logger that throws must not take a message, or the run, with it. */
function resolveLogger(given: Logger | undefined): Logger {
  if (given === undefined) return SILENT
  for (const level of ['warn', 'error'] as const) functionOption(`hopper.logger.${level}`, given[level])
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

function resolveBatch(given: HopperOptions['batch'], maxInFlight: number): ResolvedHopperOptions['batch'] {
  if (given === undefined) return Object.freeze({ size: 1, maxWaitMs: 0 })
  optionsObject('hopper.batch', given, ['size', 'maxWaitMs'])
  const size = integerOption('hopper.batch.size', given.size, { min: 1 })
  const maxWaitMs = numberOption('hopper.batch.maxWaitMs', given.maxWaitMs, { default: 0 })
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

function resolveRegistry(given: HopperOptions): CodecRegistry | undefined {
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
