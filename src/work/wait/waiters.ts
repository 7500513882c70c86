import { MillraceError } from '../../core/error.js'
import type { Clock } from '../../core/time/clock.js'
import type { EventLoopTurns } from '../../core/time/event-loop-turns.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { Ms } from '../../core/time/time.js'
import type { ItemView } from '../../ports/inspect.js'
import type { Ledger, Notification } from '../../ports/ledger.js'
import type { Receipt, WaitOptions } from '../define/work.js'
import { type Enlisted, NotStoredError, wasNeverStored } from '../enqueue/enlisted.js'
import type { Retention } from '../settle/settle.js'
import { deadEnding } from './states.js'
import type { DeadItem } from './work-failed-error.js'

const FIRST_POLL_MS = 250
// A little over 5 s: ten thousand idle waiters then cost less than two thousand reads a second.
const LONGEST_POLL_MS = 5_250

/** How many waiters share one query. */
const PAGE = 500

/** The records of the item or group are gone: it ended too long ago. */
export class ResultExpiredError extends MillraceError {
  constructor(id: string) {
    super('RESULT_EXPIRED', `result expired: the records of ${id} are gone. Wait sooner, or raise keepCompleted.`, {
      facts: { id },
    })
  }
}

/** The wait ended after its timeout. The work goes on. */
export class WaitTimeoutError extends MillraceError {
  constructor(id: string, timeoutMs: Ms) {
    super(
      'WAIT_TIMEOUT',
      `${id} did not settle within ${timeoutMs} ms. The work goes on; wait again, or read its state.`,
      {
        facts: { id, timeoutMs },
      },
    )
  }
}

/** What an item ended with: the stored text of its result, or of its error. */
export type Ended = { readonly result: string | undefined } | DeadEnd

/** How an item died. */
export type DeadEnd = Pick<DeadItem, 'error' | 'ending' | 'class'>

/** The item is dead. What its caller gets says more (`WorkFailedError`). */
export class ItemDied {
  readonly end: DeadEnd

  constructor(end: DeadEnd) {
    this.end = end
  }
}

/** What a caller waits for. */
export interface Awaited {
  readonly kind: 'item' | 'group'
  readonly id: string
  readonly groupId: string
  /** Id of the handle's item. */
  readonly item: string
  /** Its envelope names our inbox already. */
  readonly hasInbox: boolean
  /** With the group of an item that existed already, where that is known. */
  readonly accepted: Promise<Accepted>
  /** It was written in a transaction of the caller. */
  readonly enlisted?: Enlisted | undefined
}

/** What became of an enqueue, or of the search for an item: with its group, and how it ended if it has. */
export type Accepted = Receipt & { readonly groupId?: string; readonly ended?: Ended | undefined }

interface Waiter {
  readonly kind: 'item' | 'group'
  id: string
  /** The group it belongs to: a caller that waits for an item handles its group too. */
  groupId: string
  /** Id of an item that existed already, while its group is still to be read. */
  groupOf?: string | undefined
  readonly resolve: (text: string | undefined) => void
  readonly reject: (error: unknown) => void
  pollAt: Ms
  everyMs: Ms
  /** The backend has stored it: if it is unknown later, its records have expired. */
  isKnown: boolean
  /** Or the transaction that it was written in has not committed. */
  readonly enlisted: Enlisted | undefined
}

export interface WaitersOptions {
  readonly ledger: Ledger
  readonly clock: Clock
  readonly inbox: string
  readonly onError: (error: unknown) => void
  /** An unresolved wait keeps the process alive. */
  readonly holdsProcess: boolean
  readonly keep: Retention
  /** With a backend that answers in microtasks, all queries would run before anything else in the process. */
  readonly turns: EventLoopTurns
}

/** Callers that wait for items and groups: one subscription and one timer for all of them. */
export class Waiters {
  readonly #o: WaitersOptions
  readonly #items = new Map<string, Set<Waiter>>()
  readonly #groups = new Map<string, Set<Waiter>>()
  #unregistered: Waiter[] = []
  #count = 0
  #release: (() => void) | undefined
  #unsubscribe: (() => void) | undefined
  #cancelPoll: (() => void) | undefined
  #pollDueMs: Ms = Infinity

  constructor(options: WaitersOptions) {
    this.#o = options
  }

  /** Unresolved waits. */
  get size(): number {
    return this.#count
  }

  /** An item ended in this process: its waiters need no notification from the backend. */
  itemEnded(id: string, ended: Ended): void {
    const waiting = this.#items.get(id)
    if (waiting === undefined) return
    for (const waiter of [...waiting]) {
      if ('error' in ended) this.#settle(waiter, () => waiter.reject(new ItemDied(ended)))
      else this.#settle(waiter, () => waiter.resolve(ended.result))
    }
  }

  groupClosed(id: string, value: string | undefined): void {
    for (const waiter of [...(this.#groups.get(id) ?? [])]) this.#settle(waiter, () => waiter.resolve(value))
  }

  /** Resumes the waits that were open when it was closed. */
  open(): void {
    if (this.#count === 0) return
    this.#listen()
    void this.#register([...this.#all()])
  }

  /** Ends the subscription and the timer. Waits stay open until it is opened again. */
  close(): void {
    this.#cancelPoll?.()
    this.#cancelPoll = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#release?.()
    this.#release = undefined
  }

  /** Resolves with the text of an item's result or of a group's value; rejects with the error of an item that is dead. */
  wait(what: Awaited, options: WaitOptions = {}): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const { kind, id, groupId, item, hasInbox, accepted, enlisted } = what
      const { timeout, signal } = options
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const cleanUps: (() => void)[] = []
      const clean = () => {
        for (const cleanUp of cleanUps) cleanUp()
      }
      const waiter: Waiter = {
        kind,
        id,
        groupId,
        resolve: (text) => {
          clean()
          resolve(text)
        },
        reject: (error) => {
          clean()
          reject(error)
        },
        pollAt: this.#o.clock.monotonic() + FIRST_POLL_MS,
        everyMs: FIRST_POLL_MS,
        isKnown: false,
        enlisted,
      }
      if (timeout !== undefined) {
        const onTimeout = () => this.#settle(waiter, () => waiter.reject(new WaitTimeoutError(id, timeout)))
        cleanUps.push(this.#o.clock.after(timeout, onTimeout))
      }
      if (signal !== undefined) {
        const onAbort = () => this.#settle(waiter, () => waiter.reject(signal.reason))
        signal.addEventListener('abort', onAbort, { once: true })
        cleanUps.push(() => signal.removeEventListener('abort', onAbort))
      }
      this.#add(waiter)
      accepted.then(
        (receipt) => {
          // The stored item is another one: it names other inboxes, and has its own group.
          if (receipt.kind === 'coalesced' && receipt.groupId !== undefined) {
            if (kind === 'item' && receipt.ended !== undefined) this.itemEnded(id, receipt.ended)
            else this.#found(waiter, receipt.groupId)
            return
          }
          if (receipt.kind === 'coalesced') {
            waiter.groupOf = item
            void this.#findGroups([waiter]).catch(this.#o.onError)
            return
          }
          waiter.isKnown = true
          if (!hasInbox) this.#registerSoon(waiter)
        },
        (error) => this.#settle(waiter, () => waiter.reject(error)),
      )
    })
  }

  #indexOf({ kind }: Waiter): Map<string, Set<Waiter>> {
    return kind === 'item' ? this.#items : this.#groups
  }

  #add(waiter: Waiter): void {
    const index = this.#indexOf(waiter)
    const same = index.get(waiter.id)
    if (same === undefined) index.set(waiter.id, new Set([waiter]))
    else same.add(waiter)
    this.#count += 1
    this.#listen()
  }

  #listen(): void {
    if (this.#o.holdsProcess) this.#release ??= keepAlive()
    this.#unsubscribe ??= this.#o.ledger.onInbox(this.#o.inbox, (notification) => this.#onNotification(notification))
    this.#armPoll(FIRST_POLL_MS)
  }

  *#all(): Generator<Waiter> {
    for (const index of [this.#items, this.#groups]) for (const same of index.values()) yield* same
  }

  #settle(waiter: Waiter, finish: () => void): void {
    const index = this.#indexOf(waiter)
    const same = index.get(waiter.id)
    if (same?.delete(waiter) !== true) return
    if (same.size === 0) index.delete(waiter.id)
    this.#count -= 1
    if (this.#count === 0) {
      this.#release?.()
      this.#release = undefined
    }
    finish()
  }

  /** Registers the inbox for items whose envelope does not name it, together with its neighbours of this turn. */
  #registerSoon(waiter: Waiter): void {
    this.#unregistered.push(waiter)
    if (this.#unregistered.length > 1) return
    queueMicrotask(() => {
      const watched = this.#unregistered
      this.#unregistered = []
      void this.#register(watched)
    })
  }

  async #register(waiters: readonly Waiter[]): Promise<void> {
    try {
      for (let from = 0; from < waiters.length; from += PAGE) {
        await this.#o.turns.pass()
        const some = waiters.slice(from, from + PAGE)
        const { ids } = idsOf(some)
        // The groups of items too: a group counts as handled when a caller waits for one of its items.
        const groupIds = [...new Set(some.map((waiter) => waiter.groupId))]
        await this.#o.ledger.watch(this.#o.inbox, { itemIds: ids, groupIds })
        // What ended before the inbox was registered sent no notification: query once.
        await this.#queryPage(some)
      }
    } catch (error) {
      this.#o.onError(error)
    }
  }

  #onNotification(notification: Notification): void {
    const waiters: Waiter[] = []
    for (const id of notification.itemIds) waiters.push(...(this.#items.get(id) ?? []))
    for (const id of notification.groupIds) waiters.push(...(this.#groups.get(id) ?? []))
    if (waiters.length > 0) void this.#query(waiters).catch(this.#o.onError)
  }

  /** A caller whose item existed already waits for the group of that item. */
  async #findGroups(waiters: readonly Waiter[]): Promise<void> {
    const views = await this.#o.ledger.read(waiters.map(({ groupOf = '' }) => groupOf))
    for (const [i, waiter] of waiters.entries()) {
      // Found meanwhile.
      if (waiter.groupOf === undefined) continue
      waiter.groupOf = undefined
      this.#found(waiter, views[i]?.envelope.groupId)
    }
  }

  /** Its item exists. Its group may be another one than that of the handle. */
  #found(waiter: Waiter, groupId: string | undefined): void {
    // It may be over meanwhile.
    if (this.#indexOf(waiter).get(waiter.id)?.has(waiter) !== true) return
    waiter.isKnown = true
    if (groupId !== undefined && groupId !== waiter.groupId) this.#move(waiter, groupId)
    this.#registerSoon(waiter)
  }

  #move(waiter: Waiter, groupId: string): void {
    waiter.groupId = groupId
    if (waiter.kind === 'item') return
    const same = this.#groups.get(waiter.id)
    same?.delete(waiter)
    if (same?.size === 0) this.#groups.delete(waiter.id)
    waiter.id = groupId
    const others = this.#groups.get(groupId)
    if (others === undefined) this.#groups.set(groupId, new Set([waiter]))
    else others.add(waiter)
  }

  /** In pages: one read of a hundred thousand items would hold up everything else on its connection. */
  async #query(waiters: readonly Waiter[]): Promise<void> {
    for (let from = 0; from < waiters.length; from += PAGE) {
      await this.#o.turns.pass()
      await this.#queryPage(waiters.slice(from, from + PAGE))
    }
  }

  async #queryPage(waiters: readonly Waiter[]): Promise<void> {
    const unfound = waiters.filter(({ groupOf }) => groupOf !== undefined)
    if (unfound.length > 0) await this.#findGroups(unfound)
    const { ids, groups } = idsOf(waiters)
    // Before it is accepted the item may rightly be unknown, even if the reply comes afterwards.
    const known = new Set(waiters.filter(({ isKnown }) => isKnown))
    const [views, values] = await Promise.all([
      ids.length === 0 ? [] : this.#o.ledger.read(ids),
      groups.length === 0 ? [] : this.#o.ledger.groups(groups),
    ])
    ids.forEach((id, i) => {
      const view = views[i]
      if (view === undefined) this.#gone(this.#items.get(id), known)
      else {
        markSeen(this.#items.get(id))
        const ended = endedOf(view)
        if (ended !== undefined) this.itemEnded(id, ended)
      }
    })
    groups.forEach((id, i) => {
      const value = values[i]
      if (value === undefined) this.#gone(this.#groups.get(id), known)
      else {
        markSeen(this.#groups.get(id))
        if (value.open <= 0) this.groupClosed(id, value.value)
      }
    })
  }

  /** The backend does not know what they wait for. */
  #gone(waiters: ReadonlySet<Waiter> | undefined, known: ReadonlySet<Waiter>): void {
    for (const waiter of [...(waiters ?? [])]) {
      if (!known.has(waiter)) continue
      if (waiter.enlisted === undefined) this.#expired(waiter)
      else void this.#enlistedGone(waiter, waiter.enlisted).catch(this.#o.onError)
    }
  }

  #expired(waiter: Waiter): void {
    this.#settle(waiter, () => waiter.reject(new ResultExpiredError(waiter.id)))
  }

  /** If this fails, the next poll asks again. */
  async #enlistedGone(waiter: Waiter, enlisted: Enlisted): Promise<void> {
    const nowMs = this.#o.clock.monotonic()
    if (!(await wasNeverStored(enlisted, nowMs, this.#o.keep, this.#o.ledger))) this.#expired(waiter)
    else this.#settle(waiter, () => waiter.reject(new NotStoredError(waiter.id)))
  }

  /** One timer, for the earliest poll. Polls fall on a grid, so waits that start one after the other share theirs. */
  #armPoll(ms: Ms): void {
    const dueMs = onGrid(this.#o.clock.monotonic() + ms)
    if (this.#cancelPoll !== undefined && this.#pollDueMs <= dueMs) return
    this.#cancelPoll?.()
    this.#pollDueMs = dueMs
    this.#cancelPoll = this.#o.clock.after(Math.max(1, dueMs - this.#o.clock.monotonic()), () => {
      this.#cancelPoll = undefined
      void this.#poll()
    })
  }

  /** The fallback for lost notifications: polls, in batches and less and less often, for waits that are due. */
  async #poll(): Promise<void> {
    if (this.#count === 0) return
    const now = this.#o.clock.monotonic()
    const due: Waiter[] = []
    let nextAt = Infinity
    for (const waiter of this.#all()) {
      if (waiter.pollAt <= now) {
        due.push(waiter)
        waiter.everyMs = Math.min(LONGEST_POLL_MS, waiter.everyMs * 2)
        waiter.pollAt = now + waiter.everyMs
      }
      nextAt = Math.min(nextAt, waiter.pollAt)
    }
    this.#armPoll(Math.max(1, nextAt - now))
    try {
      if (due.length > 0) await this.#query(due)
    } catch (error) {
      // The backend may be back at the next poll.
      this.#o.onError(error)
    }
  }
}

/** The backend knows what these wait for. */
function markSeen(waiters: ReadonlySet<Waiter> | undefined): void {
  for (const { enlisted } of waiters ?? []) if (enlisted !== undefined) enlisted.isSeen = true
}

function onGrid(ms: Ms): Ms {
  return Math.ceil(ms / FIRST_POLL_MS) * FIRST_POLL_MS
}

function idsOf(waiters: readonly Waiter[]): { readonly ids: readonly string[]; readonly groups: readonly string[] } {
  return {
    ids: [...new Set(waiters.filter((w) => w.kind === 'item').map((w) => w.id))],
    groups: [...new Set(waiters.filter((w) => w.kind === 'group').map((w) => w.id))],
  }
}

export function endedOf(view: ItemView): Ended | undefined {
  if (view.status === 'completed') return { result: view.result }
  if (view.status === 'dead') return { error: view.error ?? 'dead', ending: deadEnding(view.ending), class: view.class }
  return undefined
}
