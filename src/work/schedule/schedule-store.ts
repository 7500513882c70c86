import type { Span } from '@opentelemetry/api'
import { GroupCommit } from '../../core/group-commit.js'
import { newToken } from '../../core/ids.js'
import { retry } from '../../core/retry/retry.js'
import type { At } from '../../core/time/time.js'
import type { Envelope } from '../../ports/item.js'
import type { Ledger, ScheduleRecord } from '../../ports/ledger.js'
import { SCHEDULE_CLAIM_MS } from '../../ports/limits.js'
import type { CommitResult, Effect } from '../../ports/settlement.js'
import { definitionOf } from '../define/built-work.js'
import { checkInput } from '../define/input-schema.js'
import type { Work, WorkInstanceOptions } from '../define/work.js'
import { commitTimeoutMs, type EngineContext } from '../engine-context.js'
import { ItemRefusedError, settlementOf, traceOf } from '../enqueue/enqueue.js'
import { resolveWork } from '../enqueue/resolve-gate.js'
import { type ResolvedItem, rootOrigin } from '../enqueue/resolve-item.js'
import { endEnqueueSpan } from '../observe/tracing.js'
import { checkWork } from '../settle/result-tree.js'
import type { Schedule } from './config.js'

/** The work that `run` returned, checked once: in every try its item has the same group and trace. */
export interface Made {
  readonly work: Work
  readonly trace?: Envelope['trace']
  /** The span of its enqueue, until `ended`. */
  readonly span?: Span
}

/** What the schedules of one system read, claim and write. Those that are due together share their round trips. */
export class ScheduleStore {
  readonly context: EngineContext
  readonly #accepted: () => void
  readonly #records: GroupCommit<string, ScheduleRecord | undefined>
  readonly #claims: GroupCommit<string, boolean>
  /** A unique name: this system may claim again what it has claimed. */
  readonly #name = newToken()

  /** `accepted` is called for everything that was enqueued. */
  constructor(context: EngineContext, schedules: NonNullable<Ledger['schedules']>, accepted: () => void) {
    this.context = context
    this.#accepted = accepted
    const { o } = context
    // A call that is never answered must not stop a schedule.
    const timeout = { ms: commitTimeoutMs(o.visibility), clock: o.clock }
    this.#records = new GroupCommit({ flush: (names) => this.#tried(() => schedules(names)), timeout })
    this.#claims = new GroupCommit({
      flush: (keys) => Promise.all(keys.map((key) => this.#tried(() => this.#claim(key)))),
      maxBatch: 1,
      maxUnderWay: Infinity,
      timeout,
    })
  }

  /** The fleet's time is the backend's. Plain ports have none: there it is the machine's. */
  now(): At {
    return this.context.ledger.atomic ? this.context.now() : this.context.o.clock.now()
  }

  record(name: string): Promise<ScheduleRecord | undefined> {
    return this.#records.add(name)
  }

  /** Whether this system may call `run` for this occurrence. One system at a time may; another one when that takes too long. */
  claim(name: string, at: At): Promise<boolean> {
    return this.#claims.add(`${this.context.o.prefix}sched-run:${at}:${name}`)
  }

  /** Moves the record on from `at`, and enqueues the work of the occurrence in the same step. */
  async move(schedule: Schedule, at: At | undefined, nextAt: At, fired?: ResolvedItem): Promise<CommitResult> {
    const { name, spec } = schedule
    const effects: Effect[] = [{ do: 'schedule', name, spec, nextAt }]
    if (fired !== undefined) effects.push(...settlementOf(fired).effects)
    return this.#sent(fired, () => this.context.commits.add({ guard: { by: 'schedule', name, at }, effects }))
  }

  /** Enqueues work that came too late to be enqueued with its record. */
  async enqueue(fired: ResolvedItem): Promise<void> {
    const result = await this.#sent(fired, () => this.context.commits.add(settlementOf(fired)))
    if (result.kind === 'failed') throw result.error
    if (result.kind === 'refused') throw refusal(result)
  }

  /** Checks what `run` returned, including its input, before anything is written. */
  async made(work: Work): Promise<Made> {
    checkWork(work)
    // A schedule runs in the context in which it was added, which is not the reason why it fires.
    const made: Made = { work, ...traceOf(this.context, work, true) }
    try {
      const schema = this.context.registry.meet(work.type, definitionOf(work))?.options.input
      const checked = schema === undefined ? undefined : await checkInput(work.type, schema, work.input)
      if (checked !== undefined && 'problem' in checked) throw checked.problem
    } catch (error) {
      this.ended(made, error)
      throw error
    }
    return made
  }

  /** Ends the span of its enqueue: it is accepted, or it never will be. */
  ended({ span }: Made, ...error: [unknown?]): void {
    if (span !== undefined) endEnqueueSpan(span, error.length === 0 ? Promise.resolve() : Promise.reject(error[0]))
  }

  /** The work as an item, or as a gate. Its options are resolved now. */
  item({ work, trace }: Made, options: WorkInstanceOptions | undefined): ResolvedItem {
    return resolveWork(this.context.rules, work, options, rootOrigin(work, trace), this.context.now())
  }

  async #sent(fired: ResolvedItem | undefined, send: () => Promise<CommitResult>): Promise<CommitResult> {
    if (fired === undefined) return send()
    const { recorder } = this.context
    const { item } = fired
    recorder.queueing(item)
    try {
      const result = await send()
      if (result.kind === 'applied') {
        recorder.queued(item, this.context.now())
        this.context.remember(item, { status: 'pending' })
        this.#accepted()
      }
      return result
    } finally {
      recorder.notQueued(item.id)
    }
  }

  /** Reads back a claim whose answer may have been lost. */
  async #claim(key: string): Promise<boolean> {
    const { store } = this.context.ports
    if (await store.setIfNotExists(key, this.#name, SCHEDULE_CLAIM_MS)) return true
    return (await store.get(key)) === this.#name
  }

  #tried<T>(call: () => Promise<T>): Promise<T> {
    const { portRetry } = this.context.o.given
    return portRetry === undefined ? call() : retry(call, portRetry)
  }
}

export function refusal({ code, message, limit }: Extract<CommitResult, { kind: 'refused' }>): ItemRefusedError {
  return new ItemRefusedError(code, message, limit)
}
