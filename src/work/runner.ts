import { classify } from '../core/classify.js'
import type { JsonCodec } from '../core/codec.js'
import { abortReason, isRetryAbort } from '../core/control-errors.js'
import { MillraceError } from '../core/error.js'
import { errorText } from '../core/error-text.js'
import type { Verdict } from '../core/failure.js'
import { fingerprint } from '../core/fingerprint.js'
import { getDefaultRetryOptions } from '../core/retry-defaults.js'
import type { At, Maybe } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { CommitResult, GroupValue, Settlement } from '../ports/settlement.js'
import type { Settling } from '../source/ledger-feed.js'
import type { Delivery } from '../source/loop/delivery.js'
import { ShutdownDeadlineError } from '../source/loop/errors.js'
import { contributors, fold, needsFold } from './contribution.js'
import type { Contribution, Outcome, Ran } from './outcome.js'
import { planChildren } from './plan.js'
import type { ItemRules } from './resolve-item.js'
import { checkReturned, type ResultNode } from './result-tree.js'
import { RunContext, type RunServices } from './run-context.js'
import { type Settled, settle, type Told } from './settle.js'
import type { ResolvedSystemOptions } from './system-options.js'
import type { WorkDefinition } from './work.js'
import type { FailureClassifier, FailureDecision } from './work-options.js'

/** The reason of `ctx.signal` when the deadline came while the handler was running. */
export class DeadlineError extends MillraceError {
  constructor(deadline: At) {
    super(
      'DEADLINE',
      `The deadline (${new Date(deadline).toISOString()}) came while this was running. Stop if you can.`,
      {
        facts: { deadline },
      },
    )
  }
}

/** A run's settlement together with what it means, for whoever tells of it once it is durable. */
export class WorkSettling implements Settling {
  settlement: Settlement
  told: Told
  result?: CommitResult
  readonly ran: Ran
  /** The value itself, for the event; text travels in the settlement. */
  readonly value: unknown
  readonly #settle: (ran: Ran) => Settled
  readonly #contributed: ((now: GroupValue) => Ran) | undefined

  constructor(ran: Ran, settle: (ran: Ran) => Settled, value?: unknown, contributed?: (now: GroupValue) => Ran) {
    const { settlement, told } = settle(ran)
    this.settlement = settlement
    this.told = told
    this.ran = ran
    this.value = value
    this.#settle = settle
    this.#contributed = contributed
  }

  refold(now: GroupValue): Settlement {
    try {
      return this.#again(this.#contributed?.(now) ?? this.ran)
    } catch (error) {
      // An `append` that throws is a failure of its run, though it comes late.
      return this.#again({ ...this.ran, outcome: failureOf(error, classify(error)) })
    }
  }

  refused(refusal: Refusal): Settlement {
    return this.#again({ ...this.ran, outcome: refused(refusal) })
  }

  #again(ran: Ran): Settlement {
    const { settlement, told } = this.#settle(ran)
    this.told = told
    return settlement
  }
}

type Refusal = Extract<CommitResult, { readonly kind: 'refused' }>

export interface RunnerOptions {
  readonly o: ResolvedSystemOptions
  readonly rules: ItemRules
  readonly worker: string
  readonly now: () => At
  readonly groupValue: (groupId: string) => Promise<GroupValue | undefined>
  readonly services: RunServices
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
    const { item } = delivery
    const { envelope } = item
    const codec = this.#r.rules.registry.codecOf(envelope.type, this.#r.o.codec)
    let input: unknown
    try {
      input = codec.parse(envelope.input)
    } catch (error) {
      return this.ended(delivery, { kind: 'unreadable', error: `bad input: ${errorText(error)}` })
    }
    const startedAt = this.#r.now()
    this.#r.started(delivery, startedAt)
    const cancelDeadline = this.#armDeadline(delivery, startedAt)
    try {
      const context = new RunContext(delivery, this.#r.services)
      const returned = await this.#inLog(def, input, () => def.run(input as never, context))
      const strict = def.options.strictReturn ?? this.#r.o.strictReturn
      const root = checkReturned(envelope.type, returned, context.made, strict)
      return await this.#returned(item, startedAt, root, codec)
    } catch (error) {
      // A handler that stops because it was told to is not punished for it.
      if (isShutdown(delivery.reason)) return this.#settling(this.#ran(item, startedAt, { kind: 'interrupted' }))
      return this.#settling(this.#ran(item, startedAt, await this.#threw(error, item, def)))
    } finally {
      cancelDeadline?.()
    }
  }

  #ran(item: Claimed, startedAt: At, outcome: Outcome): Ran {
    return { item, startedAt, endedAt: this.#r.now(), worker: this.#r.worker, outcome }
  }

  #returned(item: Claimed, startedAt: At, root: ResultNode, codec: JsonCodec): Maybe<WorkSettling> {
    const { envelope } = item
    const nodes = contributors(root)
    const { children, gates } = planChildren(this.#r.rules, root, item, this.#r.now())
    const value = root.kind === 'result' ? root.value : undefined
    const result = value === undefined ? undefined : encodeResult(codec, envelope.type, value)
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
    return this.#groupValue(envelope.groupId).then((now) => this.#settling(folded(now), value, folded))
  }

  /** A read that fails must not run the handler again: folded on nothing, the commit answers with the value to fold on. */
  async #groupValue(groupId: string): Promise<GroupValue | undefined> {
    try {
      return await this.#r.groupValue(groupId)
    } catch (error) {
      this.#r.onError(error, 'commit')
      return undefined
    }
  }

  #settling(ran: Ran, value?: unknown, contributed?: (now: GroupValue) => Ran): WorkSettling {
    return new WorkSettling(ran, this.#settle, value, contributed)
  }

  readonly #settle = (ran: Ran): Settled => settle(ran, this.#r.o.keep, this.#r.now(), this.#r.o.random)

  async #threw(error: unknown, item: Claimed, def: WorkDefinition<string, never>): Promise<Outcome> {
    const reason = abortReason(error)
    let verdict = classify(error, { now: this.#r.now() })
    let said: 'retry' | 'abort' | undefined = isRetryAbort(error) ? 'abort' : undefined
    const classifier = def.options.onFailure ?? this.#r.o.given.onFailure
    if (said === undefined && verdict.deferTo === undefined && classifier !== undefined) {
      const decision = await this.#askClassifier(classifier, error, item)
      if (decision === 'retry' || decision === 'abort') said = decision
      else if (decision !== undefined) verdict = overrule(verdict, decision, this.#r.now())
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

  #inLog<T>(def: WorkDefinition<string, never>, input: unknown, fn: () => T): T {
    const { logWith, logContext } = this.#r.o.given
    if (logWith === undefined) return fn()
    const context = { ...logContext?.(input, def.type), ...def.options.logContext?.(input as never) }
    return logWith(context, fn)
  }

  #armDeadline(delivery: Delivery<Claimed>, now: At): (() => void) | undefined {
    const { deadline } = delivery.item.envelope
    if (deadline === undefined) return undefined
    return this.#r.o.clock.after(Math.max(0, deadline - now), () => delivery.abort(new DeadlineError(deadline)))
  }
}

function isShutdown(reason: unknown): boolean {
  return reason instanceof ShutdownDeadlineError
}

function encodeResult(codec: JsonCodec, type: string, value: unknown): string {
  const text: unknown = codec.stringify(value)
  if (typeof text === 'string') return text
  throw new TypeError(`the codec of work "${type}" must return a string from stringify, and returned ${typeof text}`)
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

/** What the backend will never take is the item's own doing: parked as poison, with the limit in its reason. */
function refused(refusal: Refusal): Outcome {
  const rule = refusal.code === 'TOO_LARGE' ? 'too-large' : 'bad-name'
  return failureOf(refusal.message, { class: 'poison', rule })
}

function failureOf(reason: unknown, verdict: Verdict, said?: 'retry' | 'abort'): Outcome {
  return {
    kind: 'threw',
    error: errorText(reason),
    fingerprint: fingerprint(reason, verdict.class),
    verdict,
    ...(said === undefined ? {} : { said }),
  }
}
