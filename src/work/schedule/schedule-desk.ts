import type { Span } from '@opentelemetry/api'
import { newToken } from '../../core/ids.js'
import { retry } from '../../core/retry.js'
import type { At } from '../../core/time.js'
import { GroupCommit } from '../../ports/group-commit.js'
import type { Envelope } from '../../ports/item.js'
import type { Ledger, ScheduleRecord } from '../../ports/ledger.js'
import type { CommitResult, Effect } from '../../ports/settlement.js'
import { checkInput } from '../controls/input.js'
import { endEnqueueSpan } from '../controls/tracing.js'
import { definitionOf, groupIdOf } from '../define-work.js'
import { resolveWork } from '../resolve-gate.js'
import type { ResolvedItem } from '../resolve-item.js'
import { checkWork } from '../result-tree.js'
import { commitPatienceMs, type Shared } from '../shared.js'
import { RefusedError, settlementOf, traceOf } from '../submitter.js'
import type { Work, WorkInstanceOptions } from '../work.js'
import type { Schedule } from './config.js'
import { CLAIM_MS } from './occurrence.js'

/** What `run` returned, looked at once: whatever is tried how often, its item carries the same group and trace. */
export interface Made {
  readonly work: Work
  readonly groupId: string
  readonly trace?: Envelope['trace']
  /** Of its enqueue, from here to `ended`. */
  readonly span?: Span
}

/** What the schedules of one system read, claim and write. Those that are due together share their round trips. */
export class ScheduleDesk {
  readonly shared: Shared
  readonly #accepted: () => void
  readonly #records: GroupCommit<string, ScheduleRecord | undefined>
  readonly #claims: GroupCommit<string, boolean>
  /** A name that no other system has: what it has claimed it may claim again. */
  readonly #name = newToken()

  /** `accepted` hears of everything that was enqueued. */
  constructor(shared: Shared, schedules: NonNullable<Ledger['schedules']>, accepted: () => void) {
    this.shared = shared
    this.#accepted = accepted
    const { o } = shared
    // A call that is never answered must not keep a schedule from going on.
    const patience = { ms: commitPatienceMs(o.visibility), clock: o.clock }
    this.#records = new GroupCommit({ flush: (names) => this.#tried(() => schedules(names)), patience })
    this.#claims = new GroupCommit({
      flush: (keys) => Promise.all(keys.map((key) => this.#tried(() => this.#claim(key)))),
      maxBatch: 1,
      maxUnderWay: Infinity,
      patience,
    })
  }

  /** The fleet's time: the backend's. Plain ports have none, and a slow reply of theirs tells nothing: the machine's own then. */
  now(): At {
    return this.shared.ledger.atomic ? this.shared.now() : this.shared.o.clock.now()
  }

  record(name: string): Promise<ScheduleRecord | undefined> {
    return this.#records.add(name)
  }

  /** Who may call `run` for this occurrence. It is given to one at a time, and to another when that one takes too long. */
  claim(name: string, at: At): Promise<boolean> {
    return this.#claims.add(`${this.shared.o.prefix}sched-run:${at}:${name}`)
  }

  /** Moves the record from `at` on, and enqueues what is fired in the same step. */
  async move(schedule: Schedule, at: At | undefined, nextAt: At, fired?: ResolvedItem): Promise<CommitResult> {
    const { name, spec } = schedule
    const effects: Effect[] = [{ do: 'schedule', name, spec, nextAt }]
    if (fired !== undefined) effects.push(...settlementOf(fired).effects)
    return this.#sent(fired, () => this.shared.commits.add({ guard: { by: 'fire', name, at }, effects }))
  }

  /** Enqueues what came too late to travel with its record. */
  async enqueue(fired: ResolvedItem): Promise<void> {
    const result = await this.#sent(fired, () => this.shared.commits.add(settlementOf(fired)))
    if (result.kind === 'failed') throw result.error
    if (result.kind === 'refused') throw refusal(result)
  }

  /**
   * Looks at what `run` returned, like any enqueue: at its input, too, before anything is written. Its group, like its id, is
   * the same for whoever fires it.
   */
  async made(work: Work): Promise<Made> {
    checkWork(work)
    const groupId = groupIdOf(work, () => `${work.id}/group`)
    // Schedules tick in whatever context they were begun: that is not the reason why they fire.
    const made: Made = { work, groupId, ...traceOf(this.shared, work, groupId, true) }
    try {
      const schema = this.shared.registry.meet(work.type, definitionOf(work))?.options.input
      const checked = schema === undefined ? undefined : await checkInput(work.type, schema, work.input)
      if (checked !== undefined && 'problem' in checked) throw checked.problem
    } catch (error) {
      this.ended(made, error)
      throw error
    }
    return made
  }

  /** Says what became of its enqueue: it is accepted, or it never will be. */
  ended({ span }: Made, ...error: [unknown?]): void {
    if (span !== undefined) endEnqueueSpan(span, error.length === 0 ? Promise.resolve() : Promise.reject(error[0]))
  }

  /** The work as an item, or as a gate. Its options are resolved now. */
  item({ work, groupId, trace }: Made, options: WorkInstanceOptions | undefined): ResolvedItem {
    const place = trace === undefined ? { groupId } : { groupId, trace }
    return resolveWork(this.shared.rules, work, options, place, this.shared.now())
  }

  async #sent(fired: ResolvedItem | undefined, send: () => Promise<CommitResult>): Promise<CommitResult> {
    if (fired === undefined) return send()
    const { recorder } = this.shared
    const { item } = fired
    recorder.queueing(item)
    try {
      const result = await send()
      if (result.kind === 'applied') {
        recorder.queued(item, this.shared.now())
        this.shared.saw(item, { status: 'pending' })
        this.#accepted()
      }
      return result
    } finally {
      recorder.notQueued(item.id)
    }
  }

  /** An answer that was lost is found out by reading back. */
  async #claim(key: string): Promise<boolean> {
    const { store } = this.shared.ports
    if (await store.setIfNotExists(key, this.#name, CLAIM_MS)) return true
    return (await store.get(key)) === this.#name
  }

  #tried<T>(call: () => Promise<T>): Promise<T> {
    const { portRetry } = this.shared.o.given
    return portRetry === undefined ? call() : retry(call, portRetry)
  }
}

export function refusal({ code, message, limit }: Extract<CommitResult, { kind: 'refused' }>): RefusedError {
  return new RefusedError(code, message, limit)
}
