import { numberOption, optionsObject } from '../../core/options.js'
import type { Result } from '../../core/stream/result.js'
import { systemClock } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import { feedOf } from '../feeds/subscription-feed.js'
import type { Inlet, SubscribeConfig, Subscription } from '../inlets/subscription.js'
import { HopperClosedError } from '../loop/errors.js'
import { Loop } from '../loop/loop.js'
import type { LoopSummary } from '../loop/loop-observer.js'
import type { Execute } from '../loop/loop-run.js'
import type { Message } from '../message/message.js'
import type { BatchHandler, Handler } from '../middleware/handler.js'
import { executeInBatches } from './execute-in-batches.js'
import { executeSingly } from './execute-singly.js'
import { lanesFor } from './hopper-lanes.js'
import { observerOf } from './hopper-observer.js'
import type { HopperOptions } from './hopper-options.js'
import { type HopperContext, hopperContext } from './prepare.js'
import {
  checkBatchable,
  checkIdentity,
  type ResolvedHopperOptions,
  resolveHopperOptions,
} from './resolve-hopper-options.js'
import { NOTHING_RUN, noCounts, type RunSummary, summaryOf } from './run-summary.js'
import { sampleLag } from './sample-lag.js'
import { type SourceTelemetry, sourceTelemetry } from './telemetry.js'

/** The stages of a hopper's life. */
export type HopperState = 'idle' | 'running' | 'draining' | 'closed'

/**
 * The consume engine for streams: fetch, ordered lanes, back-pressure, decoding, middleware, settling, heartbeats and
 * draining, over any subscription. Delivery is at least once: a message is acknowledged only after its handler said so.
 *
 * @example
 * ```ts
 * const hopper = new Hopper({ concurrency: 8, middleware: [dlq(letters), retry({ maxAttempts: 5 })] })
 * await hopper.receive(inlet, { topics: ['orders'] }, async (ctx, message) => {
 *   await ship(message, ctx.signal)
 *   return ack()
 * })
 * ```
 */
export class Hopper {
  readonly #o: ResolvedHopperOptions
  /** What runs, and when it has ended altogether. */
  readonly #runs = new Map<Loop<Message, Result>, Promise<unknown>>()
  #isClosing = false

  constructor(options?: HopperOptions) {
    this.#o = resolveHopperOptions(options)
  }

  get name(): string {
    return this.#o.name
  }

  get state(): HopperState {
    if (this.#isClosing) return this.#runs.size > 0 ? 'draining' : 'closed'
    return this.#runs.size > 0 ? 'running' : 'idle'
  }

  /**
   * Consumes a subscription until it is drained, `signal` aborts or `close` is called; rejects when a fetch fails for
   * good. The subscription stays open.
   */
  run(sub: Subscription, handler: Handler, options: { readonly signal?: AbortSignal } = {}): Promise<RunSummary> {
    return this.#run(sub, (hopper) => executeSingly(hopper, handler), undefined, options.signal)
  }

  /** Subscribes, runs, and closes the subscription whatever happens. A failing subscribe rejects unchanged. */
  async receive(
    inlet: Inlet,
    config: SubscribeConfig,
    handler: Handler,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<RunSummary> {
    return this.#subscribed(inlet, config, options, (sub) => this.run(sub, handler, options))
  }

  /** `run` for a handler of batches, cut as the `batch` option says. */
  async runBatch(
    sub: Subscription,
    handler: BatchHandler,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<RunSummary> {
    checkBatchable(this.#o)
    return this.#run(sub, (hopper) => executeInBatches(hopper, handler), this.#o.batch, options.signal)
  }

  async receiveBatch(
    inlet: Inlet,
    config: SubscribeConfig,
    handler: BatchHandler,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<RunSummary> {
    return this.#subscribed(inlet, config, options, (sub) => this.runBatch(sub, handler, options))
  }

  /**
   * Stops fetching immediately, releases what has not started, and lets running handlers finish until the deadline; then
   * their signals abort. Resolves when every run has ended. Idempotent.
   */
  async close(options: { readonly deadlineMs?: number } = {}): Promise<void> {
    const { deadlineMs } = optionsObject('close', options, ['deadlineMs'])
    const drainMs = numberOption('close.deadlineMs', deadlineMs, { min: 0, default: this.#o.loop.drainMs })
    this.#isClosing = true
    for (const loop of this.#runs.keys()) void loop.close(drainMs)
    await Promise.all(this.#runs.values())
  }

  async #subscribed(
    inlet: Inlet,
    config: SubscribeConfig,
    options: { readonly signal?: AbortSignal },
    run: (sub: Subscription) => Promise<RunSummary>,
  ): Promise<RunSummary> {
    if (this.#isClosing) throw new HopperClosedError(this.#o.name)
    const sub = await inlet.subscribe(config, options)
    let summary: RunSummary
    try {
      // Closed while it subscribed, as by a SIGTERM during start-up: that is the end of a run, not a failure.
      summary = this.#isClosing ? NOTHING_RUN : await run(sub)
    } catch (error) {
      // The caller must learn why the run failed, whatever becomes of the close.
      await sub.close().catch((e) => this.#o.logger.warn('A subscription could not be closed', { error: e }))
      throw error
    }
    await sub.close()
    return summary
  }

  #run(
    sub: Subscription,
    executeWith: (hopper: HopperContext) => Execute<Message, Result>,
    batch: ResolvedHopperOptions['batch'] | undefined,
    signal: AbortSignal | undefined,
  ): Promise<RunSummary> {
    if (this.#isClosing) return Promise.reject(new HopperClosedError(this.#o.name))
    const telemetry = sourceTelemetry(this.#o)
    const counts = noCounts()
    const loop = new Loop(this.#o.loop, observerOf(this.#o, telemetry, counts))
    const ended = this.#consume(loop, sub, telemetry, executeWith, batch, signal).finally(() => this.#runs.delete(loop))
    this.#runs.set(
      loop,
      ended.catch(() => undefined),
    )
    return ended.then((summary) => summaryOf(summary, counts))
  }

  async #consume(
    loop: Loop<Message, Result>,
    sub: Subscription,
    telemetry: SourceTelemetry,
    executeWith: (hopper: HopperContext) => Execute<Message, Result>,
    batch: ResolvedHopperOptions['batch'] | undefined,
    signal: AbortSignal | undefined,
  ): Promise<LoopSummary> {
    const o = this.#o
    checkIdentity(o.middleware, sub)
    // A partition that goes to another consumer takes its messages along, once those that run are settled.
    sub.capability('consumerGroups')?.onRevoked((partitionKeys) => {
      const revoked = new Set(partitionKeys)
      return loop.withdraw((message) => revoked.has(message.partitionKey))
    })
    const stopLag = sampleLag(sub, o.lagIntervalMs, o.loop.clock, telemetry.lag)
    // A caller awaits this run: the process must not end while it goes on.
    const release = o.loop.clock === systemClock ? keepAlive() : () => undefined
    try {
      return await loop.run(
        feedOf(sub, o),
        lanesFor(o, sub, batch),
        executeWith(hopperContext(o, telemetry, sub)),
        signal,
      )
    } finally {
      release()
      stopLag()
    }
  }
}
