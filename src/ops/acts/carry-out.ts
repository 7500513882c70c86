import { MillraceError } from '../../core/error.js'
import type { At } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { Inspect, ItemSummary } from '../../ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import type { ItemStateWord } from '../../ports/words.js'
import type { Retention } from '../../work/settle.js'
import type { ActionReport, Watching } from '../api.js'
import type { Desk } from '../desk.js'
import type { ActionBook } from './action-book.js'
import {
  type ActionRecord,
  CANARY_SIZES,
  type CanaryRecord,
  isOfBefore,
  queryOf,
  queryText,
  reportOf,
} from './action-record.js'
import { aheadOf, deathMark, judge } from './canary.js'
import { countedChange, counterOf } from './change.js'
import { ChangedPages } from './changed-pages.js'
import { patiently } from './patience.js'
import { doesTake, VERBS } from './verbs.js'

export interface CarryOut extends Watching {
  readonly desk: Desk
  readonly book: ActionBook
  readonly keep: Retention
  /** Somebody began it who may have died between a change and the note of it. */
  readonly isResumed: boolean
}

/** Another process goes on with the action. */
class TakenOver extends Error {
  readonly by: ActionRecord
  constructor(by: ActionRecord) {
    super('another process goes on with it; actions() tells how far it has come')
    this.by = by
  }
}

const TOLD_TO_STOP = 'it was told to stop; proceed goes on with it'

/**
 * Carries out a bulk action, page by page: a page is one list, one commit and one note of how far it has come. Whatever
 * happens to the process, nothing is done twice, because what was changed no longer matches; and the numbers are exact,
 * because the backend counts what was changed, in the same step.
 */
export class ActionRun {
  readonly #s: CarryOut
  readonly #inspect: Inspect
  readonly #pages: ChangedPages
  #record: ActionRecord
  /** Some of the changes since the last note may not be in its numbers. */
  #isUnsure: boolean

  constructor(services: CarryOut, begun: ActionRecord) {
    this.#s = services
    this.#record = begun
    this.#inspect = services.desk.inspect(begun.verb)
    this.#pages = new ChangedPages(services.desk)
    this.#isUnsure = services.isResumed
  }

  async toItsEnd(): Promise<ActionReport> {
    try {
      while (!this.#record.isEnding) {
        const because = await this.#judged()
        if (because !== undefined) return await this.#stop(because)
        if (this.#s.signal?.aborted === true) return await this.#stop(TOLD_TO_STOP)
        if (await this.#patiently(() => this.#step())) await this.#tell()
      }
      return await this.#end()
    } catch (error) {
      if (!(error instanceof TakenOver)) throw error
      const report = reportOf(error.by)
      return report.state === 'running' ? { ...report, state: 'stopped', because: error.message } : report
    }
  }

  /** True: it has changed a page, and has something to tell. */
  async #step(): Promise<boolean> {
    const { verb, states, at } = this.#record
    const state = states[at.state]
    if (state !== undefined) {
      await this.#page(state)
      return true
    }
    // Between the looks at two lists an item can slip from one to the other: only a round that has found none is the last.
    const isAnotherRound = VERBS[verb].isRepeated && at.found > 0
    if (isAnotherRound) await this.#note({ at: { state: 0, found: 0 } })
    else await this.#settleNumbers()
    return false
  }

  /** Whoever watches may fail: that is their error and not the backend's, and nothing is tried again for it. */
  async #tell(): Promise<void> {
    try {
      this.#s.onProgress?.(reportOf(this.#record))
    } catch (error) {
      await this.#stop('its onProgress threw; proceed goes on with it')
      throw error
    }
  }

  async #page(state: ItemStateWord): Promise<void> {
    const { verb, at, canary } = this.#record
    const size = canary?.sizes[0]
    const [page, now] = await Promise.all([
      this.#inspect.list({
        ...queryOf(this.#record),
        state,
        limit: size ?? this.#record.pageSize,
        ...(at.cursor === undefined ? {} : { cursor: at.cursor }),
      }),
      this.#s.desk.now(),
    ])
    const own = page.items.filter((view) => doesTake(verb, view, now) && isOfBefore(this.#record, view))
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
   * An item that the dead process had let run, and that failed since, waits for its retry: it looks like one that has yet to be
   * let run. Only the page that was under way can hold such items.
   */
  async #withoutThoseThatRan(views: readonly ItemSummary[]): Promise<readonly ItemSummary[]> {
    const { verb, startedAt } = this.#record
    if (!this.#isUnsure || verb !== 'runNow') return views
    const runs = await Promise.all(views.map(({ envelope }) => this.#inspect.attempts(envelope.id)))
    return views.filter((_, i) => (runs[i]?.at(-1)?.startedAt ?? 0) < startedAt)
  }

  /** Before they are sent: should this process die, the next one watches them. */
  async #noteAhead(views: readonly ItemSummary[]): Promise<void> {
    const { canary } = this.#record
    if (canary === undefined || views.length === 0) return
    const runs = await Promise.all(views.map(({ envelope }) => this.#inspect.attempts(envelope.id)))
    const marks = new Set([...canary.marks, ...views.map((view, i) => deathMark(view, runs[i]!))])
    await this.#note({
      canary: { ...canary, marks: [...marks], ahead: views.map((view, i) => aheadOf(view, runs[i]!)) },
    })
  }

  /** Why it must not go on; undefined when those that were sent ahead have done well, or none was. */
  async #judged(): Promise<string | undefined> {
    const { canary, id } = this.#record
    if (canary === undefined || canary.ahead.length === 0) return undefined
    const { desk, signal } = this.#s
    const judgement = await this.#patiently(() => judge(desk, `ops:${id}`, canary, signal))
    switch (judgement.kind) {
      case 'fine':
        await this.#note({ canary: { ...canary, ahead: [] } })
        return undefined
      case 'failed': {
        // Whoever goes on with it has mended something, one hopes: then it begins with one again.
        const again: CanaryRecord = { ...canary, ahead: [], sizes: CANARY_SIZES }
        await this.#note({ canary: again })
        return judgement.because
      }
      case 'late':
        return judgement.because
      case 'aborted':
        return TOLD_TO_STOP
      default:
        return unreachable(judgement)
    }
  }

  /** Changes them in one commit, and writes down which: an item that was discarded has nobody left to ask who did it. */
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
      // With the next note of how far it has come.
      this.#record = { ...this.#record, pages: slot }
      if (count < changes.length) {
        const ids = page.ids.filter((_, i) => applied[i] === true)
        // Tried again by itself: if the whole page were, what this commit has changed would be in no number.
        await this.#patiently(() => this.#pages.replace(id, slot, { at: now, ids }))
      }
    }
    return count
  }

  /**
   * Which were changed by this commit. A commit that rejects may have happened, and is not repeated as it is: what it
   * redrove may be dead again by then. The whole page is looked at anew instead, and the backend's count tells.
   */
  async #commit(batch: readonly Settlement[]): Promise<readonly boolean[]> {
    const wasUnsure = this.#isUnsure
    this.#isUnsure = true
    const results = await this.#s.desk.ledger.commit(batch)
    const applied = results.map((result) => isApplied(result))
    this.#isUnsure = wasUnsure
    return applied
  }

  async #counted(): Promise<number> {
    const [group] = await this.#s.desk.ledger.groups([counterOf(this.#record.id)])
    return group?.open ?? 0
  }

  /** Everything is done: what was there and was not changed had moved on. */
  async #settleNumbers(): Promise<void> {
    const [done, endedAt] = await Promise.all([this.#counted(), this.#s.desk.now()])
    await this.#note({ isEnding: true, endedAt, done, passed: Math.max(0, this.#record.total - done) })
  }

  async #end(): Promise<ActionReport> {
    const { done, passed, id } = this.#record
    await this.#patiently(async () => {
      const open = await this.#counted()
      const count: readonly Effect[] = open > 0 ? [{ do: 'closeGroup', groupId: counterOf(id), by: open }] : []
      await this.#log(`done: ${done} changed, ${passed} had moved on`, count)
    })
    await this.#note({ state: 'done' })
    return reportOf(this.#record)
  }

  async #stop(because: string): Promise<ActionReport> {
    const { done, total } = this.#record
    await this.#note({ state: 'stopped', because })
    await this.#patiently(() => this.#log(`stopped after ${done} of ${total}: ${because}`))
    return reportOf(this.#record)
  }

  async #log(what: string, effects: readonly Effect[] = []): Promise<void> {
    const [result] = await this.#s.desk.ledger.commit([logged(this.#record, what, effects)])
    if (result !== undefined) isApplied(result)
  }

  /** Only while nobody else has it: two who write down their places in turn would lose each other's. */
  async #note(change: Partial<ActionRecord>): Promise<void> {
    const { book } = this.#s
    this.#record = { ...this.#record, ...change }
    await this.#patiently(async () => {
      const known = await book.load(this.#record.id)
      if (known !== undefined && known.runner !== this.#record.runner) throw new TakenOver(known)
      await book.save(this.#record)
    })
  }

  #patiently<T>(call: () => Promise<T>): Promise<T> {
    return patiently(this.#s.desk.clock, call, (error) => error instanceof TakenOver)
  }
}

/** A line in the log about an action as a whole. */
export function logged(record: ActionRecord, what: string, effects: readonly Effect[] = []): Settlement {
  const { verb, id, who, why } = record
  const line: Effect = { do: 'log', who, why, what: `${verb} of ${queryText(record)} (action ${id}) ${what}` }
  return { guard: { by: 'none' }, effects: [line, ...effects] }
}

/** Stale: it has moved on. What a backend refuses or fails on stops the action, for the next who goes on with it. */
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
      throw new TypeError('an act of a person folds nothing: the backend broke its contract')
    default:
      return unreachable(result)
  }
}
