import { classify } from '../../../core/failure/classify.js'
import { doublingDelay } from '../../../core/retry/backoff.js'
import { decideRetry, type RetryDecision } from '../../../core/retry/decide-retry.js'
import { errorMessage } from '../../../core/text/error-text.js'
import type { Clock } from '../../../core/time/clock.js'
import { EventLoopTurns } from '../../../core/time/event-loop-turns.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { Ms } from '../../../core/time/time.js'
import type { StacksWarning } from '../api.js'
import type { Outbox, OutboxEntry } from '../backend.js'
import { bookKey } from '../documents/names.js'
import { isConflict } from '../errors.js'
import { outside, type Scope, type ScopeSlot } from '../transaction/scope.js'
import { WatcherLease } from './watcher-lease.js'
import type { DurableWatcher } from './watchers.js'

export interface DurableDeliveryOptions {
  readonly watcher: DurableWatcher
  readonly outbox: Outbox
  /** The name of this process. */
  readonly holder: string
  readonly clock: Clock
  readonly leaseMs: Ms
  readonly runIn: <T>(scope: Scope, run: () => T) => T
  readonly warn: (warning: StacksWarning) => void
  /** Keeps an event that cannot be delivered, with the reason. */
  readonly deadLetter: (watcher: DurableWatcher, entry: OutboxEntry, error: unknown, tries: number) => Promise<void>
}

/** A write that waits for its event to be handled. */
interface Waiter {
  readonly seq: number
  readonly resolve: () => void
}

/** What a handler threw; `isFinal`: it would throw that again. */
interface Failure {
  readonly error: unknown
  readonly isFinal: boolean
}

/** How many events are read in one query. */
const BATCH = 100
/** How long progress may be kept in memory only: a crash repeats that much. */
const SAVE_EVERY_MS: Ms = 50
/** The fallback where no wake-up came: poll this often. */
const POLL_MS: Ms = 1_000
/**
 * How often an event is delivered before it is dead-lettered, and the longest pause between two tries. A conflict says nothing about
 * the event: it passes soon, so it is tried often and for about a minute; any other failure for about two.
 */
const TRIES = { conflict: 60, failure: 20 }
const MAX_PAUSE_MS: Readonly<Record<keyof typeof TRIES, Ms>> = { conflict: 1_000, failure: 10_000 }

/**
 * Delivers events to one durable watcher, in commit order. In a fleet, the process that holds the watcher's lease does so; the
 * others poll when they are woken. Progress is stored after the handler, so a crash repeats events and loses none. An event whose
 * handler fails is delivered again with backoff, and then dead-lettered: nothing is skipped.
 */
export class DurableDelivery {
  readonly #options: DurableDeliveryOptions
  readonly #turns: EventLoopTurns
  #running: Promise<void> | undefined
  #isAsked = false
  #isStopped = false
  #isBehind = false
  #onPoll: (() => void)[] = []
  #waiters: Waiter[] = []
  #cancelPoll: (() => void) | undefined
  #endPause: () => void = () => undefined

  constructor(options: DurableDeliveryOptions) {
    this.#options = options
    this.#turns = new EventLoopTurns(options.clock)
  }

  get watcher(): DurableWatcher {
    return this.#options.watcher
  }

  /** Polls for events now, or once more when the present poll ends. */
  wake(): void {
    if (this.#isStopped) return
    this.#isAsked = true
    // Outside of whatever transaction or delivery woke it.
    this.#running ??= this.#options.runIn(outside(), () => this.#run())
  }

  /** Whether the last poll found events, and not all of them have been delivered since. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Polls for events, and resolves when it knows whether there are any. */
  begin(): Promise<void> {
    return new Promise((resolve) => {
      this.#onPoll.push(resolve)
      this.wake()
    })
  }

  /** Resolves when the event was handled here, or is another process's to handle. */
  settled(seq: number): Promise<void> {
    if (this.#isStopped) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiters.push({ seq, resolve })
      this.wake()
    })
  }

  /** Lets the handler that runs come to its end. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelPoll?.()
    this.#endPause()
    await this.#running
    this.#polled(false)
    this.#settle(() => true)
  }

  async #run(): Promise<void> {
    this.#cancelPoll?.()
    // Events are delivered before the process ends by itself.
    const release = this.#options.clock.isReal === true ? keepAlive() : undefined
    let pauseMs = POLL_MS
    try {
      while (this.#isAsked && !this.#isStopped) {
        this.#isAsked = false
        const isOurs = await this.#pass()
        // The holder of the lease may have polled just before the newest event came.
        if (!isOurs) pauseMs = Math.min(POLL_MS, this.#options.leaseMs / 2)
      }
    } catch (error) {
      this.#polled(this.#isBehind)
      this.#settle(() => true)
      const message = `Events cannot be delivered to the durable watcher "${this.watcher.name}"; delivery is retried.`
      this.#options.warn({ code: 'DELIVERY_FAILED', message, error, watcher: this.watcher.name })
    } finally {
      release?.()
      this.#running = undefined
      if (!this.#isStopped) {
        if (this.#isAsked) this.wake()
        else this.#cancelPoll = this.#options.clock.after(pauseMs, () => this.wake())
      }
    }
  }

  /** Delivers everything that waits. False: another process holds the lease. */
  async #pass(): Promise<boolean> {
    const { outbox, watcher, holder, leaseMs } = this.#options
    // This poll settles only the writes that were waiting when it began: one that comes while the store is queried may have
    // committed its event after the store answered. It has asked for another poll.
    const waiting = new Set(this.#waiters)
    const isBehind = await outbox.isBehind(watcher.name)
    this.#polled(isBehind)
    if (!isBehind) {
      this.#settle((waiter) => waiting.has(waiter))
      return true
    }
    const claim = await outbox.claim(watcher.name, holder, leaseMs)
    if (claim === null) {
      this.#settle((waiter) => waiting.has(waiter))
      return false
    }
    const lease = new WatcherLease(this.#options)
    try {
      if (await this.#deliver(claim.cursor, lease)) return true
    } finally {
      lease.end()
    }
    this.#settle((waiter) => waiting.has(waiter))
    return false
  }

  /** False: the lease was lost, and the process that took over delivers the rest. */
  async #deliver(from: number, lease: WatcherLease): Promise<boolean> {
    const { outbox, watcher, holder, clock } = this.#options
    let cursor = from
    let saved = from
    const save = async (isMore: boolean): Promise<boolean> => {
      if (!(await outbox.advance(watcher.name, holder, { from: saved, to: cursor }, isMore))) return false
      this.#isBehind = isMore
      saved = cursor
      savedAt = clock.monotonic()
      this.#settle(({ seq }) => seq <= cursor)
      return true
    }
    let savedAt = clock.monotonic()
    for (;;) {
      // One more than is delivered, to know whether that was all: the next write waits only for a watcher that is not behind.
      const entries = await outbox.read(watcher.name, cursor, BATCH + 1)
      const batch = entries.slice(0, BATCH)
      for (const entry of batch) {
        if (this.#isStopped) break
        if (!(await lease.isHeld())) return false
        const outcome = await this.#handle(entry, lease)
        if (outcome === 'lost') return false
        if (outcome === 'stopped') break
        cursor = entry.seq
        await this.#turns.due()
        const isLate = clock.monotonic() - savedAt >= SAVE_EVERY_MS
        if (isLate && entry !== batch.at(-1) && !(await save(true))) return false
      }
      const isMore = entries.length > BATCH && !this.#isStopped
      if (!(await save(isMore))) return false
      if (!isMore) return true
    }
  }

  /** Delivers an event until it is handled or dead-lettered, unless the delivery stops or the lease is lost before. */
  async #handle(entry: OutboxEntry, lease: WatcherLease): Promise<'handled' | 'stopped' | 'lost'> {
    for (let tries = 1; ; tries += 1) {
      const failure = await this.#try(entry)
      if (failure === undefined) return 'handled'
      const next = this.#nextTry(failure, tries)
      if (next.kind !== 'retry' && next.kind !== 'defer') {
        await this.#giveUp(entry, failure.error, tries)
        return 'handled'
      }
      if (!isConflict(failure.error)) this.#failed(entry, failure.error, tries, next.delayMs)
      if (next.kind === 'defer') tries -= 1
      if (!this.#isStopped) await this.#pause(next.delayMs)
      if (this.#isStopped) return 'stopped'
      if (!(await lease.isHeld())) return 'lost'
    }
  }

  async #try({ event, hops }: OutboxEntry): Promise<Failure | undefined> {
    const { watcher, runIn } = this.#options
    const delivery: ScopeSlot = { isOver: false }
    const scope: Scope = { ...outside(), hops: hops + 1, delivery, isDurable: true }
    let failure: Failure | undefined
    try {
      await runIn(scope, async () => watcher.handler(event))
    } catch (error) {
      failure = { error, isFinal: false }
    } finally {
      delivery.isOver = true
    }
    // A chain that was too long would be too long again. It is reported here, because the call that began it may be gone.
    return scope.chain.refusal === undefined ? failure : { error: scope.chain.refusal, isFinal: true }
  }

  #nextTry({ error, isFinal }: Failure, tries: number): RetryDecision {
    const now = this.#options.clock.now()
    const kind = isConflict(error) ? 'conflict' : 'failure'
    return decideRetry({
      verdict: classify(error, { now }),
      said: isFinal ? 'abort' : undefined,
      attempt: tries,
      maxAttempts: TRIES[kind],
      delayMs: (attempt) => doublingDelay(attempt - 1, { baseMs: 20, maxMs: MAX_PAUSE_MS[kind] }),
      now,
    })
  }

  /** Writes wait for a first try only: this event may take long, and those after it wait for it. */
  #failed({ event }: OutboxEntry, error: unknown, tries: number, delayMs: Ms): void {
    this.#isBehind = true
    this.#settle(() => true)
    if (tries > 1) return
    const { watcher, warn } = this.#options
    const message = `The durable watcher "${watcher.name}" failed on the ${event.type} of a document in ${bookKey(event)}; it is tried again in ${delayMs} ms: ${errorMessage(error)}`
    warn({ code: 'WATCHER_FAILED', message, error, watcher: watcher.name })
  }

  async #giveUp(entry: OutboxEntry, error: unknown, tries: number): Promise<void> {
    const { watcher, warn, deadLetter } = this.#options
    await deadLetter(watcher, entry, error, tries)
    const { event } = entry
    const message = `The durable watcher "${watcher.name}" failed ${tries === 1 ? 'for good' : `${tries} times`} on the ${event.type} of a document in ${bookKey(event)}. The event is dead-lettered (see deadEvents()), and it goes on with the next one: ${errorMessage(error)}`
    warn({ code: 'EVENT_DEAD_LETTERED', message, error, watcher: watcher.name })
  }

  /** Ends early when the delivery stops. */
  #pause(ms: Ms): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve)
      this.#endPause = () => {
        cancel()
        resolve()
      }
    })
  }

  #polled(isBehind: boolean): void {
    this.#isBehind = isBehind
    for (const resolve of this.#onPoll.splice(0)) resolve()
  }

  #settle(isDone: (waiter: Waiter) => boolean): void {
    const left: Waiter[] = []
    for (const waiter of this.#waiters) {
      if (isDone(waiter)) waiter.resolve()
      else left.push(waiter)
    }
    this.#waiters = left
  }
}
