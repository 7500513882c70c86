import type { Span } from '@opentelemetry/api'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JsonCodec } from '../../core/codec/codec.js'
import { errorText } from '../../core/text/error-text.js'
import { isInstance } from '../../core/text/safe-read.js'
import { type At, isPromise, type MaybePromise, type Ms, whenHere } from '../../core/time/time.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { GroupValue } from '../../ports/settlement.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { CancelledError, ShutdownDeadlineError } from '../../source/loop/errors.js'
import type { Batch } from '../define/define-batch-work.js'
import { DEPENDENCY_TYPE, type DependencyInput } from '../define/dependency.js'
import { type CheckedInput, checkInput, checkQueued } from '../define/input-schema.js'
import type { WorkDefinition } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { endBatchSpan, endRunSpan, tracedBy, within } from '../observe/tracing.js'
import { AppendQueue } from '../settle/append-queue.js'
import { contributors, fold, needsFold, textOf } from '../settle/group-value.js'
import type { Contribution, FinishedRun, Outcome } from '../settle/outcome.js'
import { AppendPendingSettlement, RunPendingSettlement } from '../settle/pending-settlement.js'
import { type Plan, planChildren } from '../settle/plan-children.js'
import { checkReturned, isAwaited, NotReturnedError, plainResult, type ResultNode } from '../settle/result-tree.js'
import { type RunSettlement, settle } from '../settle/settle.js'
import { inPlace } from '../worker/lend-place.js'
import { BatchLimits } from './batch-limits.js'
import { classifyFailure } from './classify-failure.js'
import { filledInput } from './dependents-results.js'
import { runBatch } from './run-batch.js'
import { RunContext, type RunServices } from './run-context.js'
import { GateRunner } from './run-gate.js'
import {
  armLimits,
  checkLate,
  DeadlineError,
  hasLimits,
  overBy,
  RunOver,
  RunTimeoutError,
  untilOver,
} from './run-limits.js'

type Definition = WorkDefinition<string, never>

/** A run that has started. */
interface Begun {
  readonly input: unknown
  readonly startedAt: At
}

/** A handler that is called, and what is needed to settle what it comes to. */
interface Run {
  readonly delivery: Delivery<ClaimedItem>
  readonly def: Definition
  begun: Begun
  /** Of a run that has limits. */
  readonly startedMs: Ms
  readonly codec: JsonCodec
  readonly span: Span | undefined
  /** What the run waits for: it goes on if the run is over before. */
  handling: unknown
}

const NOT_BEGUN: Begun = Object.freeze({ input: undefined, startedAt: 0 })

function over(delivery: Delivery<ClaimedItem>, disarm: (() => void) | undefined): void {
  delivery.onAbort = undefined
  disarm?.()
}

function overAfter<T>(
  running: Promise<T>,
  delivery: Delivery<ClaimedItem>,
  disarm: (() => void) | undefined,
): Promise<T> {
  return running.finally(() => over(delivery, disarm))
}

const isToCome = ({ value }: ResultNode): boolean => value instanceof Promise

function outcomeOf(contributions: readonly Contribution[], { children, gates }: Plan, result?: string): Outcome {
  return result === undefined
    ? { kind: 'returned', contributions, children, gates }
    : { kind: 'returned', contributions, children, gates, result }
}

export interface HandlerRunnerOptions {
  readonly context: EngineContext
  readonly services: RunServices
  /** The run is over, and its handler is not. */
  readonly overran: (item: ClaimedItem, handling: Promise<unknown>) => void
  /** The handler is about to be called. */
  readonly started: (delivery: Delivery<ClaimedItem>, at: At) => void
}

/** Runs handlers and turns whatever happens into a settlement. Never throws. */
export class HandlerRunner {
  readonly #o: HandlerRunnerOptions
  readonly #context: EngineContext
  readonly #gates: GateRunner
  readonly #appends: AppendQueue

  constructor(options: HandlerRunnerOptions) {
    const { context } = options
    this.#o = options
    this.#context = context
    this.#gates = new GateRunner(context)
    this.#appends = new AppendQueue({
      isCounted: context.ledger.atomic,
      read: async (id) => (await context.ledger.groups([id]))[0],
      onError: (error) => context.failed(error, 'commit'),
      clock: context.o.clock,
      timeoutMs: context.o.visibility / 4,
    })
  }

  /** The settlement of an item that ended without a run. */
  ended({ item }: Delivery<ClaimedItem>, outcome: Outcome): RunPendingSettlement {
    const now = this.#context.now()
    return this.#settling(this.#ran(item, now, outcome, now))
  }

  /** A handler that returns immediately is settled immediately: nothing on its way makes a promise. */
  run(delivery: Delivery<ClaimedItem>, def: Definition): MaybePromise<RunPendingSettlement> {
    const span = this.#context.tracing.run(delivery.item.envelope)
    const running = this.#run(delivery, def, span)
    if (span === undefined) return running
    return whenHere(running, (settling) => {
      endRunSpan(span, settling, this.#context.o.redacted)
      return settling
    })
  }

  #run(delivery: Delivery<ClaimedItem>, def: Definition, span: Span | undefined): MaybePromise<RunPendingSettlement> {
    const { item } = delivery
    const { clock } = this.#context.o
    const codec = this.#codecOf(item.envelope.type)
    const startedAt = this.#context.now()
    const startedMs = hasLimits(item) ? clock.monotonic() : 0
    const isGate = item.envelope.type === DEPENDENCY_TYPE
    // Before the schema is called: that is part of the run, and may hang like any handler.
    const disarm = isGate ? undefined : armLimits(clock, delivery, startedAt)
    let running: MaybePromise<RunPendingSettlement>
    try {
      const begun = this.#begin(delivery, def, codec, startedAt)
      const run = { delivery, def, begun: NOT_BEGUN, startedMs, codec, span, handling: undefined }
      running = isPromise(begun) ? this.#goLater(run, begun) : this.#go(run, begun)
    } catch (error) {
      over(delivery, disarm)
      throw error
    }
    if (isPromise(running)) return overAfter(running, delivery, disarm)
    over(delivery, disarm)
    return running
  }

  async #goLater(run: Run, begun: Promise<Begun | RunPendingSettlement>): Promise<RunPendingSettlement> {
    return this.#go(run, await begun)
  }

  #go(run: Run, begun: Begun | RunPendingSettlement): MaybePromise<RunPendingSettlement> {
    if (!('startedAt' in begun)) return begun
    run.begun = begun
    const { item } = run.delivery
    return item.envelope.type === DEPENDENCY_TYPE ? this.#runGate(item, begun) : this.#handle(run)
  }

  async #runGate(item: ClaimedItem, { input, startedAt }: Begun): Promise<RunPendingSettlement> {
    const outcome = await this.#gates.outcome(item, input as DependencyInput)
    return this.#settling(this.#ran(item, startedAt, outcome))
  }

  #handle(run: Run): MaybePromise<RunPendingSettlement> {
    const context = new RunContext(run.delivery, this.#o.services)
    try {
      run.handling = this.#called(run, context)
      if (!isAwaited(run.handling)) {
        const ended = this.#handlerReturned(run, context, run.handling)
        return isPromise(ended) ? this.#orFailed(run, ended) : ended
      }
    } catch (error) {
      return this.#runFailed(run, error)
    }
    return this.#whenReturned(run, context)
  }

  /** What the handler returns, called in its place. */
  #called({ delivery, def, begun, span }: Run, context: RunContext): unknown {
    const handle = this.#inPlace(delivery, () => def.run(begun.input as never, context))
    return this.#inLog(
      delivery.item.envelope,
      def,
      begun.input,
      span === undefined ? handle : () => within(span, handle),
    )
  }

  #whenReturned(run: Run, context: RunContext): Promise<RunPendingSettlement> {
    const returned = untilOver(run.delivery, Promise.resolve(run.handling))
    return this.#orFailed(
      run,
      returned.then((value) => this.#handlerReturned(run, context, value)),
    )
  }

  #orFailed(run: Run, ended: Promise<RunPendingSettlement>): Promise<RunPendingSettlement> {
    return ended.catch((error) => this.#runFailed(run, error))
  }

  #handlerReturned(run: Run, context: RunContext, returned: unknown): MaybePromise<RunPendingSettlement> {
    const { delivery, def, startedMs } = run
    const { item } = delivery
    if (hasLimits(item)) checkLate(item, this.#context.o.clock.monotonic() - startedMs, this.#context.now())
    const root = checkReturned(item.envelope.type, returned, context.made, this.#isStrict(def))
    const isComplete = !this.#context.registry.hasSchemas && (context.made.length === 0 || !context.made.some(isToCome))
    return isComplete ? this.#settlingOf(run, root) : this.#whenComplete(run, context, root)
  }

  #settlingOf({ delivery, begun, codec, span }: Run, root: ResultNode): MaybePromise<RunPendingSettlement> {
    return this.#returned(tracedBy(delivery.item, span), begun.startedAt, root, codec)
  }

  /** Values that come later have come, and the inputs of what it queued are checked. */
  async #whenComplete(run: Run, context: RunContext, root: ResultNode): Promise<RunPendingSettlement> {
    const { registry } = this.#context
    for (const node of context.made) {
      if (!(node.value instanceof Promise)) continue
      run.handling = node.value
      node.value = await untilOver(run.delivery, node.value)
    }
    const checking = registry.hasSchemas ? checkQueued(root, (work) => registry.schemaOf(work)) : undefined
    if (checking instanceof Promise) {
      run.handling = checking
      await untilOver(run.delivery, checking)
    }
    return this.#settlingOf(run, root)
  }

  #runFailed({ delivery, def, begun, handling }: Run, error: unknown): Promise<RunPendingSettlement> {
    if (isInstance(error, RunOver) && handling instanceof Promise) this.#o.overran(delivery.item, handling)
    return this.#failed(delivery, begun.startedAt, error, def)
  }

  /** Reads the input and starts the run. A settlement is the end of a run that cannot start. */
  #begin(
    delivery: Delivery<ClaimedItem>,
    def: Definition,
    codec: JsonCodec,
    startedAt: At,
  ): MaybePromise<Begun | RunPendingSettlement> {
    let input: unknown
    try {
      input = codec.parse(delivery.item.envelope.input)
    } catch (error) {
      return this.ended(delivery, { kind: 'unreadable', error: `bad input: ${errorText(error)}`, rule: 'decode' })
    }
    const { references } = delivery.item.envelope
    if (def.options.input === undefined && references === undefined && !delivery.aborted) {
      this.#o.started(delivery, startedAt)
      return { input, startedAt }
    }
    return this.#beginChecked(delivery, def, input, startedAt)
  }

  async #beginChecked(
    delivery: Delivery<ClaimedItem>,
    def: Definition,
    input: unknown,
    startedAt: At,
  ): Promise<Begun | RunPendingSettlement> {
    const { item } = delivery
    const schema: StandardSchemaV1 | undefined = def.options.input
    let value = input
    try {
      const { references } = item.envelope
      if (references !== undefined) value = await filledInput(this.#context, input, references)
      const checked = schema === undefined ? { value } : await this.#checked(delivery, def.type, schema, value)
      if ('problem' in checked) {
        return this.ended(delivery, { kind: 'unreadable', error: errorText(checked.problem), rule: 'schema' })
      }
      value = checked.value
    } catch (error) {
      // The schema itself failed, which says nothing about the input, or did not answer in time.
      if (isInstance(error, RunOver)) return this.#overEarly(delivery, startedAt, error, def)
      return this.#settling(this.#ran(item, startedAt, await this.#threw(error, item, def)))
    }
    // Cancelled while it waited for its turn, or for its schema.
    const early = delivery.aborted ? overBy(item, delivery.reason, false) : undefined
    if (early !== undefined) return this.#overEarly(delivery, startedAt, early, def)
    this.#o.started(delivery, startedAt)
    return { input: value, startedAt }
  }

  /** What the schema answers, unless the run is over first. A schema that goes on keeps the item's place, like a handler. */
  async #checked(
    delivery: Delivery<ClaimedItem>,
    type: string,
    schema: StandardSchemaV1,
    input: unknown,
  ): Promise<CheckedInput> {
    const checking = checkInput(type, schema, input)
    if (!(checking instanceof Promise)) return checking
    const outer = delivery.onAbort
    try {
      return await untilOver(delivery, checking, false)
    } catch (error) {
      if (isInstance(error, RunOver)) this.#o.overran(delivery.item, checking)
      throw error
    } finally {
      delivery.onAbort = outer
    }
  }

  /** The end of a run whose handler was never called. */
  async #overEarly(
    delivery: Delivery<ClaimedItem>,
    startedAt: At,
    { reason }: RunOver,
    def: Definition,
  ): Promise<RunPendingSettlement> {
    const { item } = delivery
    if (reason instanceof DeadlineError) return this.ended(delivery, { kind: 'expired' })
    if (reason instanceof CancelledError) {
      return this.ended(delivery, { kind: 'cancelled', why: await this.#why(reason, item), hasRun: false })
    }
    return this.#settling(this.#ran(item, startedAt, await this.#threw(reason, item, def)))
  }

  /** The outcome of a run that is over whatever its handler comes to. */
  async #over({ reason }: RunOver, item: ClaimedItem, def: Definition): Promise<Outcome> {
    if (reason instanceof DeadlineError) return { kind: 'expired', hasRun: true }
    if (reason instanceof RunTimeoutError) return this.#threw(reason, item, def)
    return { kind: 'cancelled', why: await this.#why(reason, item), hasRun: true }
  }

  async #why({ why }: CancelledError, { envelope }: ClaimedItem): Promise<string> {
    if (why !== undefined) return why
    try {
      return (await this.#context.ledger.read([envelope.id]))[0]?.cancelReason ?? ''
    } catch (error) {
      // The cancel counts even without its reason.
      this.#context.failed(error, 'commit')
      return ''
    }
  }

  /** Runs several items of a batched type together, and settles each by itself. */
  runBatch(
    deliveries: readonly Delivery<ClaimedItem>[],
    def: Definition,
    batch: Batch<never>,
  ): Promise<readonly RunPendingSettlement[]> {
    const { clock } = this.#context.o
    const now = () => this.#context.now()
    const { services } = this.#o
    const codec = this.#codecOf(def.type)
    let limits = new BatchLimits(clock, now, deliveries)
    let isFirst = true
    const span = this.#context.tracing.batch(def.type, deliveries)
    const running = runBatch(
      {
        begin: (delivery) => this.#begin(delivery, def, codec, now()),
        run: async (items) => {
          const begun = items.map(({ delivery }) => delivery)
          // An item that runs again as a batch of one has the time of a whole run.
          if (!isFirst) limits = new BatchLimits(clock, now, begun)
          isFirst = false
          const inputs = items.map(({ input }) => input)
          const handle = this.#inPlace(begun[0]!, async () =>
            batch.run(inputs as never[], () => begun.map((one) => new RunContext(one, services))),
          )
          const inSpan = span === undefined ? handle : () => within(span, handle)
          const returned = await limits.until(begun, inSpan, (item, handling) => this.#o.overran(item, handling))
          if (this.#isStrict(def) && returned.unreturned > 0) throw new NotReturnedError(def.type, returned.unreturned)
          return returned.outcomes
        },
        now,
        returned: ({ delivery, startedAt }, value) => {
          limits.check(delivery)
          return this.#returned(tracedBy(delivery.item, span), startedAt, plainResult(def.type, value), codec)
        },
        threw: async ({ delivery, startedAt }, error, at) => {
          return this.#failed(delivery, startedAt, limits.over(delivery) ?? error, def, at)
        },
        putOff: ({ delivery }) => this.ended(delivery, { kind: 'waiting', delayMs: 0 }),
      },
      deliveries,
    ).finally(() => limits.close())
    return span === undefined ? running : endBatchSpan(span, running, this.#context.o.redacted)
  }

  /** `at`: when it failed. Items that ran together failed together. Default: now. */
  async #failed(
    { item, reason }: Delivery<ClaimedItem>,
    startedAt: At,
    error: unknown,
    def: Definition,
    at?: At,
  ): Promise<RunPendingSettlement> {
    const ended = (outcome: Outcome) => this.#settling(this.#ran(item, startedAt, outcome, at))
    const over = isInstance(error, RunOver) ? error : overBy(item, reason)
    if (over !== undefined) return ended(await this.#over(over, item, def))
    // A handler that stops because the process shuts down spends no attempt.
    if (reason instanceof ShutdownDeadlineError) return ended({ kind: 'interrupted' })
    return ended(await this.#threw(error, item, def, at))
  }

  #returned(item: ClaimedItem, startedAt: At, root: ResultNode, codec: JsonCodec): MaybePromise<RunPendingSettlement> {
    const { envelope } = item
    const groupCodec = this.#context.o.codec
    const nodes = contributors(root)
    const plan = planChildren(this.#context.rules, root, item, () => this.#context.now())
    const value = root.kind === 'result' ? root.value : undefined
    const result = value === undefined ? undefined : textOf(codec, value, `The result of work "${envelope.type}"`)
    if (needsFold(nodes)) return this.#appending(item, startedAt, nodes, { plan, result, value })
    return this.#settling(
      this.#ran(item, startedAt, outcomeOf(fold(nodes, groupCodec, undefined), plan, result)),
      value,
    )
  }

  /** A contribution that depends on the value so far, which may have to be read first. */
  #appending(
    item: ClaimedItem,
    startedAt: At,
    nodes: readonly ResultNode[],
    { plan, result, value }: { readonly plan: Plan; readonly result: string | undefined; readonly value: unknown },
  ): MaybePromise<RunPendingSettlement> {
    const folded = (now: GroupValue | undefined) =>
      this.#ran(item, startedAt, outcomeOf(fold(nodes, this.#context.o.codec, now), plan, result))
    const settling = (now: GroupValue | undefined) =>
      new AppendPendingSettlement(folded, this.#settle, value, this.#appends, now)
    const known = this.#appends.value(item.envelope.groupId)
    return known instanceof Promise ? known.then(settling) : settling(known)
  }

  #ran(item: ClaimedItem, startedAt: At, outcome: Outcome, endedAt: At = this.#context.now()): FinishedRun {
    return { item, startedAt, endedAt, worker: this.#context.worker.id, outcome }
  }

  #settling(ran: FinishedRun, value?: unknown): RunPendingSettlement {
    return new RunPendingSettlement(ran, this.#settle, value, ran.endedAt)
  }

  readonly #settle = (ran: FinishedRun, at: At = this.#context.now()): RunSettlement =>
    settle(ran, this.#context.o.keep, at, this.#context.o.random)

  #threw(error: unknown, item: ClaimedItem, def: Definition, at?: At): Promise<Outcome> {
    return classifyFailure(this.#context, error, item, def, at)
  }

  #codecOf(type: string): JsonCodec {
    return this.#context.registry.codecOf(type, this.#context.o.codec)
  }

  #isStrict(def: Definition): boolean {
    return def.options.strictReturn ?? this.#context.o.strictReturn
  }

  #inPlace<T>(delivery: Delivery<ClaimedItem>, handle: () => T): () => T {
    return () => inPlace(this.#context.lending.placeOf(delivery), handle)
  }

  #inLog<T>({ trace }: Envelope, def: Definition, input: unknown, fn: () => T): T {
    const { logWith, logContext } = this.#context.o.given
    if (logWith === undefined) return fn()
    const context = {
      ...(trace === undefined ? {} : { trace }),
      ...logContext?.(input, def.type),
      ...def.options.logContext?.(input as never),
    }
    return logWith(context, fn)
  }
}
