import { doublingDelay } from '../../../core/retry/backoff.js'
import type { Clock } from '../../../core/time/clock.js'
import { EventLoopTurns } from '../../../core/time/event-loop-turns.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { Ms } from '../../../core/time/time.js'
import type { StacksWarning } from '../api.js'
import type { Outbox, OutboxEntry } from '../backend.js'
import { bookKey } from '../documents/names.js'
import { isConflict } from '../errors.js'
import { outside, type Scope, type Slot } from '../transaction/scope.js'
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
}

/** A write that waits for its event to be handled. */
interface Waiter {
  readonly seq: number
  readonly resolve: () => void
}

/** How many events are read in one query. */
const BATCH = 100
/** How long progress may be kept in memory only: a crash repeats that much. */
const SAVE_EVERY_MS: Ms = 50
/** The fallback where no wake-up came: poll this often. */
const POLL_MS: Ms = 1_000
/**
 * How often an event is delivered again whose handler lost against another transaction, and the longest pause between. About a
 * minute: a conflict says nothing about the event, and skipping it would lose what it was to set in motion.
 */
const MAX_TRIES = 60
const MAX_PAUSE_MS: Ms = 1_000

/**
 * Delivers events to one durable watcher, in commit order. In a fleet, the process that holds the watcher's lease does so; the
 * others poll when they are woken. Progress is stored after the handler, so a crash repeats events and loses none.
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
        if (!(await this.#handle(entry))) break
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

  /** False: it was stopped before the event could be delivered. */
  async #handle({ event, hops }: OutboxEntry): Promise<boolean> {
    const { watcher, runIn, warn, clock } = this.#options
    for (let tries = 1; ; tries += 1) {
      const delivery: Slot = { isOver: false }
      const scope: Scope = { ...outside(), hops: hops + 1, delivery, isDurable: true }
      let failure: { readonly error: unknown } | undefined
      try {
        await runIn(scope, async () => watcher.handler(event))
      } catch (error) {
        failure = { error }
      } finally {
        delivery.isOver = true
      }
      if (isConflict(failure?.error) && tries < MAX_TRIES) {
        if (this.#isStopped) return false
        await clock.sleep(doublingDelay(tries, { baseMs: 10, maxMs: MAX_PAUSE_MS }))
        continue
      }
      // A chain that was too long is reported here, because the call that began it may be gone.
      if (scope.chain.refusal !== undefined) failure = { error: scope.chain.refusal }
      if (failure === undefined) return true
      const message = `The durable watcher "${watcher.name}" failed on a ${event.type} in ${bookKey(event)}; it goes on with the next event.`
      warn({ code: 'PHASE2_FAILED', message, error: failure.error, watcher: watcher.name })
      return true
    }
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
