import { MillraceError } from '../../core/error.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { Inspect, ItemSummary } from '../../ports/inspect.js'
import type { CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import type { ItemState } from '../../ports/words.js'
import type { Retention } from '../../work/settle/settle.js'
import type { ActionReport, Watching } from '../api.js'
import type { OpsContext } from '../context.js'
import {
  type ActionRecord,
  CANARY_SIZES,
  type CanaryRecord,
  isOlderThan,
  queryOf,
  queryText,
  reportOf,
} from './action-record.js'
import type { ActionStore } from './action-store.js'
import { canaryItem, deathMark, watchCanaries } from './canary.js'
import { countedChange, counterOf } from './change.js'
import { ChangedPages } from './changed-pages.js'
import { retryCall } from './retry-call.js'
import { doesTake, VERBS } from './verbs.js'

export interface ActionServices extends Watching {
  readonly context: OpsContext
  readonly store: ActionStore
  readonly keep: Retention
  /** Another process began it, and may have died between a change and storing its progress. */
  readonly isResumed: boolean
}

/** Another process continues the action. */
class TakenOver extends Error {
  readonly by: ActionRecord
  constructor(by: ActionRecord) {
    super('another process continues it; actions() shows its progress')
    this.by = by
  }
}

const STOPPED = 'it was asked to stop; continue resumes it'

/**
 * Runs a bulk action page by page. A page is one list call, one commit and one update of the stored progress. A crash never
 * makes it change an item twice, because a changed item no longer matches. The numbers are exact, because the backend counts
 * each change in the same commit.
 */
export class ActionRun {
  readonly #s: ActionServices
  readonly #inspect: Inspect
  readonly #pages: ChangedPages
  #record: ActionRecord
  /** Changes since the stored progress may be missing from its numbers. */
  #isUnsure: boolean

  constructor(services: ActionServices, begun: ActionRecord) {
    this.#s = services
    this.#record = begun
    this.#inspect = services.context.inspect(begun.verb)
    this.#pages = new ChangedPages(services.context)
    this.#isUnsure = services.isResumed
  }

  async run(): Promise<ActionReport> {
    try {
      while (!this.#record.isEnding) {
        const because = await this.#canaryVerdict()
        if (because !== undefined) return await this.#stop(because)
        if (this.#s.signal?.aborted === true) return await this.#stop(STOPPED)
        if (await this.#retryCall(() => this.#step())) await this.#report()
      }
      return await this.#end()
    } catch (error) {
      if (!(error instanceof TakenOver)) throw error
      const report = reportOf(error.by)
      return report.state === 'running' ? { ...report, state: 'stopped', because: error.message } : report
    }
  }

  /** True: it has processed a page, so there is progress to report. */
  async #step(): Promise<boolean> {
    const { verb, states, at } = this.#record
    const state = states[at.state]
    if (state !== undefined) {
      await this.#page(state)
      return true
    }
    // An item can move from one state's list to another's between two reads, so only a round that finds nothing is the last.
    const isAnotherRound = VERBS[verb].isRepeated && at.found > 0
    if (isAnotherRound) await this.#note({ at: { state: 0, found: 0 } })
    else await this.#settleNumbers()
    return false
  }

  /** An error in `onProgress` is the caller's, not the backend's, so it is not retried. */
  async #report(): Promise<void> {
    try {
      this.#s.onProgress?.(reportOf(this.#record))
    } catch (error) {
      await this.#stop('its onProgress threw; continue resumes it')
      throw error
    }
  }

  async #page(state: ItemState): Promise<void> {
    const { verb, at, canary } = this.#record
    const size = canary?.sizes[0]
    const [page, now] = await Promise.all([
      this.#inspect.list({
        ...queryOf(this.#record),
        state,
        limit: size ?? this.#record.pageSize,
        ...(at.cursor === undefined ? {} : { cursor: at.cursor }),
      }),
      this.#s.context.now(),
    ])
    const own = page.items.filter((view) => doesTake(verb, view, now) && isOlderThan(this.#record, view))
    const taken = await this.#withoutThoseThatRan(own)
    if (size !== undefined) await this.#noteAhead(taken)
    const applied = await this.#change(taken, now)
    const found = at.found + taken.length
    const { next } = page
    const isSent = size !== undefined && applied > 0
    await this.#note({
      at: next === undefined ? { state: at.state + 1, found } : { state: at.state, cursor: next, found },
      done: this.#isUnsure ? await this.#counted() : this.#record.done + applied,
      passed: this.#record.passed + (VERBS[verb].isRepeated ? 0 : page.items.length - applied),
      ...(isSent && this.#record.canary !== undefined
        ? { canary: { ...this.#record.canary, sizes: this.#record.canary.sizes.slice(1) } }
        : {}),
    })
    this.#isUnsure = false
  }

  /**
   * An item that the dead process had already released, and that has failed since, waits for a retry: it looks like one still
   * to be released. Only the page that was in progress can hold such items.
   */
  async #withoutThoseThatRan(views: readonly ItemSummary[]): Promise<readonly ItemSummary[]> {
    const { verb, startedAt } = this.#record
    if (!this.#isUnsure || verb !== 'runNow') return views
    const runs = await Promise.all(views.map(({ envelope }) => this.#inspect.attempts(envelope.id)))
    return views.filter((_, i) => (runs[i]?.at(-1)?.startedAt ?? 0) < startedAt)
  }

  /** Stored before the items are sent: if this process dies, the next one watches them. */
  async #noteAhead(views: readonly ItemSummary[]): Promise<void> {
    const { canary } = this.#record
    if (canary === undefined || views.length === 0) return
    const runs = await Promise.all(views.map(({ envelope }) => this.#inspect.attempts(envelope.id)))
    const marks = new Set([...canary.marks, ...views.map((view, i) => deathMark(view, runs[i]!))])
    await this.#note({
      canary: { ...canary, marks: [...marks], ahead: views.map((view, i) => canaryItem(view, runs[i]!)) },
    })
  }

  /** Why the action must stop; undefined when the items sent ahead did well, or when there were none. */
  async #canaryVerdict(): Promise<string | undefined> {
    const { canary, id } = this.#record
    if (canary === undefined || canary.ahead.length === 0) return undefined
    const { context, signal } = this.#s
    const verdict = await this.#retryCall(() => watchCanaries(context, `ops:${id}`, canary, signal))
    switch (verdict.kind) {
      case 'fine':
        await this.#note({ canary: { ...canary, ahead: [] } })
        return undefined
      case 'failed': {
        // A person who continues it has presumably fixed something: start over with a single item.
        const again: CanaryRecord = { ...canary, ahead: [], sizes: CANARY_SIZES }
        await this.#note({ canary: again })
        return verdict.because
      }
      case 'late':
        return verdict.because
      case 'aborted':
        return STOPPED
      default:
        return unreachable(verdict)
    }
  }

  /** Changes the items in one commit and stores their ids, so that each timeline can name the action. Discarded items have none. */
  async #change(taken: readonly ItemSummary[], now: At): Promise<number> {
    const { verb, id, who, why } = this.#record
    const changes = taken.flatMap((view) => {
      const settlement = countedChange(view, verb, { id, who, why, keep: this.#s.keep })
      return settlement === undefined ? [] : [{ id: view.envelope.id, settlement }]
    })
    if (changes.length === 0) return 0
    const page = { at: now, ids: changes.map((change) => change.id) }
    const slot = verb === 'discard' ? undefined : await this.#pages.add(this.#record, page)
    const applied = await this.#commit(changes.map(({ settlement }) => settlement))
    const count = applied.filter((isIt) => isIt).length
    if (slot !== undefined) {
      // Stored with the next progress update.
      this.#record = { ...this.#record, pages: slot }
      if (count < changes.length) {
        const ids = page.ids.filter((_, i) => applied[i] === true)
        // Retried separately: retrying the whole page would lose the count of what this commit changed.
        await this.#retryCall(() => this.#pages.replace(id, slot, { at: now, ids }))
      }
    }
    return count
  }

  /**
   * Which items this commit changed. A rejected commit may still have happened. It is not repeated, because the items it
   * redrove may be dead again by then. Instead the page is read again, and the backend's count decides.
   */
  async #commit(batch: readonly Settlement[]): Promise<readonly boolean[]> {
    const wasUnsure = this.#isUnsure
    this.#isUnsure = true
    const results = await this.#s.context.ledger.commit(batch)
    const applied = results.map((result) => isApplied(result))
    this.#isUnsure = wasUnsure
    return applied
  }

  async #counted(): Promise<number> {
    const [group] = await this.#s.context.ledger.groups([counterOf(this.#record.id)])
    return group?.open ?? 0
  }

  /** All pages are done: an item that matched and was not changed had moved on. */
  async #settleNumbers(): Promise<void> {
    const [done, endedAt] = await Promise.all([this.#counted(), this.#s.context.now()])
    await this.#note({ isEnding: true, endedAt, done, passed: Math.max(0, this.#record.total - done) })
  }

  async #end(): Promise<ActionReport> {
    const { done, passed, id } = this.#record
    await this.#retryCall(async () => {
      const open = await this.#counted()
      const count: readonly Effect[] = open > 0 ? [{ do: 'leaveGroup', groupId: counterOf(id), count: open }] : []
      await this.#log(`done: ${done} changed, ${passed} had moved on`, count)
    })
    await this.#note({ state: 'done' })
    return reportOf(this.#record)
  }

  async #stop(because: string): Promise<ActionReport> {
    const { done, total } = this.#record
    await this.#note({ state: 'stopped', because })
    await this.#retryCall(() => this.#log(`stopped after ${done} of ${total}: ${because}`))
    return reportOf(this.#record)
  }

  async #log(what: string, effects: readonly Effect[] = []): Promise<void> {
    const [result] = await this.#s.context.ledger.commit([logged(this.#record, what, effects)])
    if (result !== undefined) isApplied(result)
  }

  /** Stores progress, unless another process has taken over: two writers would overwrite each other's progress. */
  async #note(change: Partial<ActionRecord>): Promise<void> {
    const { store } = this.#s
    this.#record = { ...this.#record, ...change }
    await this.#retryCall(async () => {
      const known = await store.load(this.#record.id)
      if (known !== undefined && known.runner !== this.#record.runner) throw new TakenOver(known)
      await store.save(this.#record)
    })
  }

  #retryCall<T>(call: () => Promise<T>): Promise<T> {
    return retryCall(this.#s.context.clock, call, (error) => error instanceof TakenOver)
  }
}

/** A line in the log about an action as a whole. */
export function logged(record: ActionRecord, what: string, effects: readonly Effect[] = []): Settlement {
  const { verb, id, who, why } = record
  const line: Effect = { do: 'log', who, why, what: `${verb} of ${queryText(record)} (action ${id}) ${what}` }
  return { guard: { by: 'none' }, effects: [line, ...effects] }
}

/** False: the item has moved on. A refusal or failure of the backend stops the action; it can be continued later. */
export function isApplied(result: CommitResult): boolean {
  switch (result.kind) {
    case 'applied':
      return true
    case 'stale':
    case 'repeated':
      return false
    case 'failed':
      throw result.error
    case 'refused':
      throw new MillraceError(result.code, result.message, { facts: { limit: result.limit } })
    case 'conflict':
      throw new TypeError('an action appends nothing, so the backend broke its contract')
    default:
      return unreachable(result)
  }
}
