import type { Span } from '@opentelemetry/api'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { classify } from '../core/classify.js'
import type { JsonCodec } from '../core/codec.js'
import { abortReason, isRetryAbort } from '../core/control-errors.js'
import { errorText } from '../core/error-text.js'
import type { Verdict } from '../core/failure.js'
import { getDefaultRetryOptions } from '../core/retry-defaults.js'
import { isInstance } from '../core/safe-read.js'
import type { At, Maybe, Ms } from '../core/time.js'
import type { Claimed, Envelope } from '../ports/item.js'
import type { GroupValue } from '../ports/settlement.js'
import type { Delivery } from '../source/loop/delivery.js'
import { CancelledError, ShutdownDeadlineError } from '../source/loop/errors.js'
import { runBatch } from './batch-run.js'
import { contributors, fold, needsFold, ResultEncodeError, textOf } from './contribution.js'
import { BatchLimits } from './controls/batch-limits.js'
import { type CheckedInput, checkInput } from './controls/input.js'
import { checkQueued } from './controls/queued-input.js'
import {
  armLimits,
  checkLate,
  DeadlineError,
  overBy,
  RunOver,
  RunTimeoutError,
  untilOver,
} from './controls/run-limits.js'
import { endBatchSpan, endRunSpan, type Tracing, tracedBy, within } from './controls/tracing.js'
import type { Batch } from './define-batch-work.js'
import { DEPENDENCY_TYPE, type DependencyInput } from './dependency.js'
import { failureOf } from './failure-of.js'
import type { Folds } from './folds.js'
import type { Contribution, Outcome, Ran } from './outcome.js'
import { inPlace, type Place } from './place.js'
import { planChildren } from './plan.js'
import { EncodeError, type ItemRules } from './resolve-item.js'
import { checkReturned, NotAResultError, NotReturnedError, ResultNode } from './result-tree.js'
import { RunContext, type RunServices } from './run-context.js'
import { type Settled, settle } from './settle.js'
import type { ResolvedSystemOptions } from './system-options.js'
import type { WorkDefinition } from './work.js'
import type { FailureClassifier, FailureDecision } from './work-options.js'
import { FoldedSettling, WorkSettling } from './work-settling.js'

/** A run that has begun. */
interface Begun {
  readonly input: unknown
  readonly startedAt: At
}

export interface RunnerOptions {
  readonly o: ResolvedSystemOptions
  readonly rules: ItemRules
  readonly worker: string
  readonly now: () => At
  readonly folds: Folds
  readonly services: RunServices
  readonly tracing: Tracing
  /** Why the item was cancelled, where that has to be asked. */
  readonly cancelledWhy: (id: string) => Promise<string | undefined>
  /** The place that a run lends while it waits for other work. Undefined: there is no need to. */
  readonly placeOf: (delivery: Delivery<Claimed>) => Place | undefined
  /** The run is over, and its handler is not. */
  readonly overran: (item: Claimed, handling: Promise<unknown>) => void
  /** What becomes of a gate whose turn has come. Never rejects. */
  readonly gate: (item: Claimed, input: DependencyInput) => Promise<Outcome>
  readonly onError: (error: unknown, phase: 'queue' | 'commit') => void
  /** The handler is about to be called. */
  readonly started: (delivery: Delivery<Claimed>, at: At) => void
}

/** Runs handlers and turns whatever happens into a settlement. Never throws. */
export class Runner {
  readonly #r: RunnerOptions

  constructor(options: RunnerOptions) {
    this.#r = options
  }

  /** The settlement of an item that ended without a run. */
  ended(delivery: Delivery<Claimed>, outcome: Outcome): WorkSettling {
    const now = this.#r.now()
    return this.#settling({ item: delivery.item, startedAt: now, endedAt: now, worker: this.#r.worker, outcome })
  }

  async run(delivery: Delivery<Claimed>, def: WorkDefinition<string, never>): Promise<WorkSettling> {
    const span = this.#r.tracing.run(delivery.item.envelope)
    const settling = await this.#run(delivery, def, span)
    if (span !== undefined) endRunSpan(span, settling.told)
    return settling
  }

  async #run(
    delivery: Delivery<Claimed>,
    def: WorkDefinition<string, never>,
    span: Span | undefined,
  ): Promise<WorkSettling> {
    const { item } = delivery
    const { type } = item.envelope
    const codec = this.#r.rules.registry.codecOf(type, this.#r.o.codec)
    const startedAt = this.#r.now()
    const startedMs = this.#r.o.clock.monotonic()
    const isGate = type === DEPENDENCY_TYPE
    // Before its schema is asked: that is part of the run, and may hang like any handler.
    const disarm = isGate ? undefined : armLimits(this.#r.o.clock, delivery, startedAt)
    try {
      const begun = await this.#begin(delivery, def, codec, startedAt)
      if (!('startedAt' in begun)) return begun
      if (!isGate) return await this.#handle(delivery, def, begun, startedMs, codec, span)
      return this.#settling(this.#ran(item, startedAt, await this.#r.gate(item, begun.input as DependencyInput)))
    } finally {
      delivery.onAbort = undefined
      disarm?.()
    }
  }

  async #handle(
    delivery: Delivery<Claimed>,
    def: WorkDefinition<string, never>,
    { input, startedAt }: Begun,
    startedMs: Ms,
    codec: JsonCodec,
    span: Span | undefined,
  ): Promise<WorkSettling> {
    const { item } = delivery
    const { envelope } = item
    let handling: unknown
    try {
      const context = new RunContext(delivery, this.#r.services)
      const handle = this.#inPlace(delivery, () => def.run(input as never, context))
      handling = this.#inLog(envelope, def, input, span === undefined ? handle : () => within(span, handle))
      const returned = handling instanceof Promise ? await untilOver(delivery, handling) : await handling
      checkLate(item, this.#r.o.clock.monotonic() - startedMs, this.#r.now())
      const strict = def.options.strictReturn ?? this.#r.o.strictReturn
      const root = checkReturned(envelope.type, returned, context.made, strict)
      for (const node of context.made) {
        if (!(node.value instanceof Promise)) continue
        handling = node.value
        node.value = await untilOver(delivery, node.value)
      }
      const { registry } = this.#r.rules
      const checking = registry.hasSchemas ? checkQueued(root, (work) => registry.schemaOf(work)) : undefined
      if (checking instanceof Promise) {
        handling = checking
        await untilOver(delivery, checking)
      }
      return await this.#returned(tracedBy(item, span), startedAt, root, codec)
    } catch (error) {
      if (isInstance(error, RunOver) && handling instanceof Promise) this.#r.overran(item, handling)
      return await this.#failed(delivery, startedAt, error, def)
    }
  }

  /** Reads the input and begins the run; a settling is the end of one that cannot be begun. */
  #begin(
    delivery: Delivery<Claimed>,
    def: WorkDefinition<string, never>,
    codec: JsonCodec,
    startedAt: At,
  ): Maybe<Begun | WorkSettling> {
    const { item } = delivery
    let input: unknown
    try {
      input = codec.parse(item.envelope.input)
    } catch (error) {
      return this.ended(delivery, { kind: 'unreadable', error: `bad input: ${errorText(error)}`, rule: 'decode' })
    }
    if (def.options.input === undefined && !delivery.aborted) {
      this.#r.started(delivery, startedAt)
      return { input, startedAt }
    }
    return this.#beginChecked(delivery, def, input, startedAt)
  }

  async #beginChecked(
    delivery: Delivery<Claimed>,
    def: WorkDefinition<string, never>,
    input: unknown,
    startedAt: At,
  ): Promise<Begun | WorkSettling> {
    const { item } = delivery
    const schema: StandardSchemaV1 | undefined = def.options.input
    let value = input
    try {
      const checked = schema === undefined ? { value } : await this.#checked(delivery, def.type, schema, input)
      if ('problem' in checked) {
        return this.ended(delivery, { kind: 'unreadable', error: errorText(checked.problem), rule: 'schema' })
      }
      value = checked.value
    } catch (error) {
      // The schema itself failed, which says nothing about the input, or did not answer in time.
      if (!isInstance(error, RunOver))
        return this.#settling(this.#ran(item, startedAt, await this.#threw(error, item, def)))
      return this.#overEarly(delivery, startedAt, error, def)
    }
    // Cancelled while it waited for its turn, or for its schema.
    const early = delivery.aborted ? overBy(item, delivery.reason, false) : undefined
    if (early !== undefined) return this.#overEarly(delivery, startedAt, early, def)
    this.#r.started(delivery, startedAt)
    return { input: value, startedAt }
  }

  /** What the schema says, unless the run is over before. One that goes on keeps the place of its item, like a handler. */
  async #checked(
    delivery: Delivery<Claimed>,
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
      if (isInstance(error, RunOver)) this.#r.overran(delivery.item, checking)
      throw error
    } finally {
      delivery.onAbort = outer
    }
  }

  /** The end of a run whose handler was never called. */
  async #overEarly(
    delivery: Delivery<Claimed>,
    startedAt: At,
    { reason }: RunOver,
    def: WorkDefinition<string, never>,
  ): Promise<WorkSettling> {
    const { item } = delivery
    if (reason instanceof DeadlineError) return this.ended(delivery, { kind: 'expired' })
    if (reason instanceof CancelledError) {
      return this.ended(delivery, { kind: 'cancelled', why: await this.#why(reason, item), hasRun: false })
    }
    return this.#settling(this.#ran(item, startedAt, await this.#threw(reason, item, def)))
  }

  /** The outcome of a run that was over before, or whatever, its handler came to. */
  async #over({ reason }: RunOver, item: Claimed, def: WorkDefinition<string, never>): Promise<Outcome> {
    if (reason instanceof DeadlineError) return { kind: 'expired', hasRun: true }
    if (reason instanceof RunTimeoutError) return this.#threw(reason, item, def)
    return { kind: 'cancelled', why: await this.#why(reason, item), hasRun: true }
  }

  async #why({ why }: CancelledError, { envelope }: Claimed): Promise<string> {
    if (why !== undefined) return why
    try {
      return (await this.#r.cancelledWhy(envelope.id)) ?? ''
    } catch (error) {
      // That it was cancelled counts, and not why.
      this.#r.onError(error, 'commit')
      return ''
    }
  }

  /** Runs several items of a batched type together, and settles each by itself. */
  runBatch(
    deliveries: readonly Delivery<Claimed>[],
    def: WorkDefinition<string, never>,
    batch: Batch<never>,
  ): Promise<readonly WorkSettling[]> {
    const codec = this.#r.rules.registry.codecOf(def.type, this.#r.o.codec)
    const limitsOf = (some: readonly Delivery<Claimed>[]) => new BatchLimits(this.#r.o.clock, () => this.#r.now(), some)
    let limits = limitsOf(deliveries)
    let isFirst = true
    const span = this.#r.tracing.batch(def.type, deliveries)
    const strict = def.options.strictReturn ?? this.#r.o.strictReturn
    const running = runBatch(
      {
        begin: (delivery) => this.#begin(delivery, def, codec, this.#r.now()),
        run: async (items) => {
          const begun = items.map(({ delivery }) => delivery)
          // An item that runs again alone has the time of a whole run.
          if (!isFirst) limits = limitsOf(begun)
          isFirst = false
          const inputs = items.map(({ input }) => input)
          const handle = this.#inPlace(begun[0]!, async () => batch.run(inputs as never[]))
          const inSpan = span === undefined ? handle : () => within(span, handle)
          const returned = await limits.until(begun, inSpan, (item, handling) => this.#r.overran(item, handling))
          if (strict && returned.unreturned > 0) throw new NotReturnedError(def.type, returned.unreturned)
          return returned.outcomes
        },
        now: () => this.#r.now(),
        returned: ({ delivery, startedAt }, value) => {
          limits.check(delivery)
          const root = value === undefined ? new ResultNode('void') : new ResultNode('result', value)
          return this.#returned(tracedBy(delivery.item, span), startedAt, root, codec)
        },
        threw: async ({ delivery, startedAt }, error, at) => {
          return this.#failed(delivery, startedAt, limits.over(delivery) ?? error, def, at)
        },
        putOff: ({ delivery }) => this.ended(delivery, { kind: 'waiting', delayMs: 0 }),
      },
      deliveries,
    ).finally(() => limits.close())
    return span === undefined ? running : endBatchSpan(span, running)
  }

  async #failed(
    delivery: Delivery<Claimed>,
    startedAt: At,
    error: unknown,
    def: WorkDefinition<string, never>,
    /** When it failed: items that ran together failed together. Default: now. */
    at?: At,
  ): Promise<WorkSettling> {
    const { item } = delivery
    const ended = (outcome: Outcome) => this.#settling(this.#ran(item, startedAt, outcome, at))
    const over = isInstance(error, RunOver) ? error : overBy(item, delivery.reason)
    if (over !== undefined) return ended(await this.#over(over, item, def))
    // A handler that stops because it was told to is not punished for it.
    if (isShutdown(delivery.reason)) return ended({ kind: 'interrupted' })
    return ended(await this.#threw(error, item, def, at))
  }

  #ran(item: Claimed, startedAt: At, outcome: Outcome, endedAt: At = this.#r.now()): Ran {
    return { item, startedAt, endedAt, worker: this.#r.worker, outcome }
  }

  #returned(item: Claimed, startedAt: At, root: ResultNode, codec: JsonCodec): Maybe<WorkSettling> {
    const { envelope } = item
    const nodes = contributors(root)
    const { children, gates } = planChildren(this.#r.rules, root, item, this.#r.now())
    const value = root.kind === 'result' ? root.value : undefined
    const result = value === undefined ? undefined : textOf(codec, value, `The result of work "${envelope.type}"`)
    const ranWith = (contributions: readonly Contribution[]): Ran =>
      this.#ran(
        item,
        startedAt,
        result === undefined
          ? { kind: 'returned', contributions, children, gates }
          : { kind: 'returned', contributions, children, gates, result },
      )
    if (!needsFold(nodes)) return this.#settling(ranWith(fold(nodes, this.#r.o.codec, undefined)), value)
    const folded = (now: GroupValue | undefined) => ranWith(fold(nodes, this.#r.o.codec, now))
    const settling = (now: GroupValue | undefined) =>
      new FoldedSettling(folded, this.#settle, value, this.#r.folds, now)
    const known = this.#r.folds.value(envelope.groupId)
    return known instanceof Promise ? known.then(settling) : settling(known)
  }

  #settling(ran: Ran, value?: unknown): WorkSettling {
    return new WorkSettling(ran, this.#settle, value, ran.endedAt)
  }

  readonly #settle = (ran: Ran, at: At = this.#r.now()): Settled => settle(ran, this.#r.o.keep, at, this.#r.o.random)

  async #threw(error: unknown, item: Claimed, def: WorkDefinition<string, never>, at?: At): Promise<Outcome> {
    const reason = abortReason(error)
    let verdict: Verdict = isMistake(error)
      ? { class: 'poison', rule: 'programming' }
      : classify(error, { now: at ?? this.#r.now() })
    let said: 'retry' | 'abort' | undefined = isRetryAbort(error) ? 'abort' : undefined
    const classifier = def.options.onFailure ?? this.#r.o.given.onFailure
    if (said === undefined && verdict.deferTo === undefined && classifier !== undefined) {
      const decision = await this.#askClassifier(classifier, error, item)
      if (decision === 'retry' || decision === 'abort') said = decision
      else if (decision !== undefined) verdict = overrule(verdict, decision, at ?? this.#r.now())
    }
    return failureOf(reason, verdict, said)
  }

  async #askClassifier(
    classifier: FailureClassifier,
    error: unknown,
    item: Claimed,
  ): Promise<FailureDecision | undefined> {
    const { id, type, attempt, retry } = item.envelope
    try {
      const decision = await classifier(error, {
        id,
        type,
        attempt,
        attempts: retry?.attempts ?? getDefaultRetryOptions().attempts,
      })
      return decision === undefined || isDecision(decision) ? (decision ?? undefined) : undefined
    } catch (own) {
      this.#r.onError(own, 'commit')
      return undefined
    }
  }

  #inPlace<T>(delivery: Delivery<Claimed>, handle: () => T): () => T {
    return () => inPlace(this.#r.placeOf(delivery), handle)
  }

  #inLog<T>({ trace }: Envelope, def: WorkDefinition<string, never>, input: unknown, fn: () => T): T {
    const { logWith, logContext } = this.#r.o.given
    if (logWith === undefined) return fn()
    const context = {
      ...(trace === undefined ? {} : { trace }),
      ...logContext?.(input, def.type),
      ...def.options.logContext?.(input as never),
    }
    return logWith(context, fn)
  }
}

function isShutdown(reason: unknown): boolean {
  return reason instanceof ShutdownDeadlineError
}

/** What a handler returned cannot be used, and would not be the second time either: nothing of it depends on the world. */
function isMistake(error: unknown): boolean {
  return [ResultEncodeError, EncodeError, NotReturnedError, NotAResultError].some((kind) => isInstance(error, kind))
}

function overrule(verdict: Verdict, decision: Exclude<FailureDecision, 'retry' | 'abort'>, now: At): Verdict {
  if (typeof decision === 'string') return { ...verdict, class: decision, rule: 'onFailure' }
  const { runAt, delay = 0 } = decision as { readonly runAt?: number; readonly delay?: number }
  const deferTo = runAt ?? now + delay
  return { class: verdict.class, rule: 'onFailure', deferTo }
}

/** What an error may be said to be. `drop` is only ever a result. */
const CLASSES_OF_ERRORS: readonly string[] = ['retryable', 'poison', 'invalidForState']

function isDecision(value: unknown): value is FailureDecision {
  if (typeof value === 'string') {
    return value === 'retry' || value === 'abort' || CLASSES_OF_ERRORS.includes(value)
  }
  if (typeof value !== 'object' || value === null) return false
  const { delay, runAt } = value as { readonly delay?: unknown; readonly runAt?: unknown }
  return Number.isFinite(delay) || Number.isFinite(runAt)
}
