import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/error.js'
import { keepAlive } from '../core/keep-alive.js'
import type { Ms } from '../core/time.js'
import type { Turns } from '../core/turns.js'
import type { ItemView, Ledger, Settled } from '../ports/ledger.js'
import { type Enlisted, NotStoredError, wasNeverStored } from './enlisted.js'
import type { Retention } from './settle.js'
import type { Receipt, WaitOptions } from './work.js'

const FIRST_POLL_MS = 250
// A little over 5 s, so that ten thousand idle waiters cost less than two thousand looks a second.
const LONGEST_POLL_MS = 5_250

/** How many waits one look at the backend is about. */
const LOOK_AT_ONCE = 500

/** The records of what was waited for are gone: it ended too long ago. */
export class ResultExpiredError extends MillraceError {
  constructor(id: string) {
    super('RESULT_EXPIRED', `result expired: nothing is kept of ${id} any more. Wait sooner, or raise keepSuccess.`, {
      facts: { id },
    })
  }
}

/** The wait was given up after its time. The work goes on. */
export class WaitTimeoutError extends MillraceError {
  constructor(id: string, timeoutMs: Ms) {
    super('WAIT_TIMEOUT', `${id} did not settle within ${timeoutMs} ms. The work goes on; wait again, or look at it.`, {
      facts: { id, timeoutMs },
    })
  }
}

/** What an item ended with: the stored text of its result, or of its error. */
export type Ended = { readonly result: string | undefined } | { readonly error: string }

/** What somebody waits for. */
export interface Awaited {
  readonly kind: 'item' | 'group'
  readonly id: string
  readonly groupId: string
  /** Id of the item of the handle that is waited on. */
  readonly item: string
  /** Its envelope names our inbox already. */
  readonly isTold: boolean
  readonly accepted: Promise<Receipt>
  /** It was written in a transaction of the caller. */
  readonly enlisted?: Enlisted | undefined
}

interface Waiter {
  readonly kind: 'item' | 'group'
  id: string
  /** The group it belongs to: whoever waits for an item has an eye on its group. */
  groupId: string
  /** The item was there already, in a group that is still to be found out: its id. */
  groupOf?: string | undefined
  readonly resolve: (text: string | undefined) => void
  readonly reject: (error: unknown) => void
  pollAt: Ms
  everyMs: Ms
  /** The backend has it, so that when it knows nothing of it, that is because nothing is kept any more. */
  isKnown: boolean
  /** Unless the transaction that it was written in has not committed. */
  readonly enlisted: Enlisted | undefined
}

/** Where waiters live: one subscription and one timer for all of them. */
export class Waiters {
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #inbox: string
  readonly #onError: (error: unknown) => void
  readonly #holdsProcess: boolean
  readonly #keep: Retention
  readonly #turns: Turns
  readonly #items = new Map<string, Set<Waiter>>()
  readonly #groups = new Map<string, Set<Waiter>>()
  #toWatch: Waiter[] = []
  #count = 0
  #release: (() => void) | undefined
  #unsubscribe: (() => void) | undefined
  #cancelPoll: (() => void) | undefined
  #pollDueMs: Ms = Infinity

  constructor(options: {
    readonly ledger: Ledger
    readonly clock: Clock
    readonly inbox: string
    readonly onError: (error: unknown) => void
    /** An unresolved wait keeps the process alive. */
    readonly holdsProcess: boolean
    readonly keep: Retention
    /** A backend that answers in microtasks would look after all of them before anything else in the process got its turn. */
    readonly turns: Turns
  }) {
    this.#ledger = options.ledger
    this.#clock = options.clock
    this.#inbox = options.inbox
    this.#onError = options.onError
    this.#holdsProcess = options.holdsProcess
    this.#keep = options.keep
    this.#turns = options.turns
  }

  /** Unresolved waits. */
  get size(): number {
    return this.#count
  }

  isGroupAwaited(groupId: string): boolean {
    return this.#groups.has(groupId)
  }

  /** An item ended in this very process: nobody needs to be told by way of the backend. */
  itemEnded(id: string, ended: Ended): void {
    const waiting = this.#items.get(id)
    if (waiting === undefined) return
    for (const waiter of [...waiting]) {
      if ('error' in ended) this.#settle(waiter, () => waiter.reject(new Error(ended.error)))
      else this.#settle(waiter, () => waiter.resolve(ended.result))
    }
  }

  groupClosed(id: string, value: string | undefined): void {
    for (const waiter of [...(this.#groups.get(id) ?? [])]) this.#settle(waiter, () => waiter.resolve(value))
  }

  /** Takes up waits that were open when it was closed. */
  open(): void {
    if (this.#count === 0) return
    this.#listen()
    void this.#watch([...this.#all()])
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
      const { kind, id, groupId, item, isTold, accepted, enlisted } = what
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
        pollAt: this.#clock.monotonic() + FIRST_POLL_MS,
        everyMs: FIRST_POLL_MS,
        isKnown: false,
        enlisted,
      }
      if (timeout !== undefined) {
        const giveUp = () => this.#settle(waiter, () => waiter.reject(new WaitTimeoutError(id, timeout)))
        cleanUps.push(this.#clock.after(timeout, giveUp))
      }
      if (signal !== undefined) {
        const onAbort = () => this.#settle(waiter, () => waiter.reject(signal.reason))
        signal.addEventListener('abort', onAbort, { once: true })
        cleanUps.push(() => signal.removeEventListener('abort', onAbort))
      }
      this.#add(waiter)
      accepted.then(
        (receipt) => {
          // The item that is there is another one: it names other inboxes, and stands in a group of its own.
          if (receipt.kind === 'coalesced') {
            waiter.groupOf = item
            void this.#findGroups([waiter]).catch(this.#onError)
            return
          }
          waiter.isKnown = true
          if (!isTold) this.#watchSoon(waiter)
        },
        // What was never accepted will never settle.
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
    if (this.#holdsProcess) this.#release ??= keepAlive()
    this.#unsubscribe ??= this.#ledger.onInbox(this.#inbox, (heard) => this.#hear(heard))
    this.#armPoll(FIRST_POLL_MS)
  }

  *#all(): Generator<Waiter> {
    for (const index of [this.#items, this.#groups]) for (const same of index.values()) yield* same
  }

  #settle(waiter: Waiter, tell: () => void): void {
    const index = this.#indexOf(waiter)
    const same = index.get(waiter.id)
    if (same?.delete(waiter) !== true) return
    if (same.size === 0) index.delete(waiter.id)
    this.#count -= 1
    if (this.#count === 0) {
      this.#release?.()
      this.#release = undefined
    }
    tell()
  }

  /** Registers with the backend what was not carried there by an envelope, together with its neighbours of this turn. */
  #watchSoon(waiter: Waiter): void {
    this.#toWatch.push(waiter)
    if (this.#toWatch.length > 1) return
    queueMicrotask(() => {
      const watched = this.#toWatch
      this.#toWatch = []
      void this.#watch(watched)
    })
  }

  async #watch(waiters: readonly Waiter[]): Promise<void> {
    try {
      for (let from = 0; from < waiters.length; from += LOOK_AT_ONCE) {
        await this.#turns.pass()
        const some = waiters.slice(from, from + LOOK_AT_ONCE)
        const { ids } = idsOf(some)
        // The groups of items too: a group that somebody looks into is no orphan.
        const groups = [...new Set(some.map((waiter) => waiter.groupId))]
        await this.#ledger.watch(this.#inbox, { ids, groups })
        // What ended before the backend knew of us told nobody: look once.
        await this.#lookAt(some)
      }
    } catch (error) {
      this.#onError(error)
    }
  }

  #hear(heard: Settled): void {
    const waiters: Waiter[] = []
    for (const id of heard.ids) waiters.push(...(this.#items.get(id) ?? []))
    for (const id of heard.groups) waiters.push(...(this.#groups.get(id) ?? []))
    if (waiters.length > 0) void this.#look(waiters).catch(this.#onError)
  }

  /** Whoever waits on an item that was there already waits for the group that it stands in. */
  async #findGroups(waiters: readonly Waiter[]): Promise<void> {
    const views = await this.#ledger.read(waiters.map(({ groupOf = '' }) => groupOf))
    for (const [i, waiter] of waiters.entries()) {
      // Found out meanwhile, or given up.
      if (waiter.groupOf === undefined || this.#indexOf(waiter).get(waiter.id)?.has(waiter) !== true) continue
      waiter.groupOf = undefined
      waiter.isKnown = true
      const groupId = views[i]?.envelope.groupId
      if (groupId !== undefined && groupId !== waiter.groupId) this.#move(waiter, groupId)
      this.#watchSoon(waiter)
    }
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
  async #look(waiters: readonly Waiter[]): Promise<void> {
    for (let from = 0; from < waiters.length; from += LOOK_AT_ONCE) {
      await this.#turns.pass()
      await this.#lookAt(waiters.slice(from, from + LOOK_AT_ONCE))
    }
  }

  async #lookAt(waiters: readonly Waiter[]): Promise<void> {
    const unfound = waiters.filter(({ groupOf }) => groupOf !== undefined)
    if (unfound.length > 0) await this.#findGroups(unfound)
    const { ids, groups } = idsOf(waiters)
    // Asked before it was accepted, the backend may rightly know nothing of it, also when the answer comes afterwards.
    const known = new Set(waiters.filter(({ isKnown }) => isKnown))
    const [views, values] = await Promise.all([
      ids.length === 0 ? [] : this.#ledger.read(ids),
      groups.length === 0 ? [] : this.#ledger.groups(groups),
    ])
    ids.forEach((id, i) => {
      const view = views[i]
      if (view === undefined) this.#gone(this.#items.get(id), known)
      else {
        seen(this.#items.get(id))
        const ended = endedOf(view)
        if (ended !== undefined) this.itemEnded(id, ended)
      }
    })
    groups.forEach((id, i) => {
      const value = values[i]
      if (value === undefined) this.#gone(this.#groups.get(id), known)
      else {
        seen(this.#groups.get(id))
        if (value.open <= 0) this.groupClosed(id, value.value)
      }
    })
  }

  /** The backend does not know what they wait for. */
  #gone(waiters: ReadonlySet<Waiter> | undefined, known: ReadonlySet<Waiter>): void {
    for (const waiter of [...(waiters ?? [])]) {
      if (!known.has(waiter)) continue
      if (waiter.enlisted === undefined) this.#expired(waiter)
      else void this.#enlistedGone(waiter, waiter.enlisted).catch(this.#onError)
    }
  }

  #expired(waiter: Waiter): void {
    this.#settle(waiter, () => waiter.reject(new ResultExpiredError(waiter.id)))
  }

  /** If this fails, the next look asks again. */
  async #enlistedGone(waiter: Waiter, enlisted: Enlisted): Promise<void> {
    const nowMs = this.#clock.monotonic()
    if (!(await wasNeverStored(enlisted, nowMs, this.#keep, this.#ledger))) this.#expired(waiter)
    else this.#settle(waiter, () => waiter.reject(new NotStoredError(waiter.id)))
  }

  /** One timer, for the earliest look. Looks fall on a grid, so that waits begun one after the other share theirs. */
  #armPoll(ms: Ms): void {
    const dueMs = onGrid(this.#clock.monotonic() + ms)
    if (this.#cancelPoll !== undefined && this.#pollDueMs <= dueMs) return
    this.#cancelPoll?.()
    this.#pollDueMs = dueMs
    this.#cancelPoll = this.#clock.after(Math.max(1, dueMs - this.#clock.monotonic()), () => {
      this.#cancelPoll = undefined
      void this.#poll()
    })
  }

  /** The net under the inbox: a batched look at whoever has waited long enough, less and less often. */
  async #poll(): Promise<void> {
    if (this.#count === 0) return
    const now = this.#clock.monotonic()
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
      if (due.length > 0) await this.#look(due)
    } catch (error) {
      // The store may be back at the next look; whoever waits goes on waiting.
      this.#onError(error)
    }
  }
}

/** The backend knows what they wait for. */
function seen(waiters: ReadonlySet<Waiter> | undefined): void {
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

function endedOf(view: ItemView): Ended | undefined {
  if (view.status === 'success') return { result: view.result }
  if (view.status === 'dead') return { error: view.error ?? 'dead' }
  return undefined
}
