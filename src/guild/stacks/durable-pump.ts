import type { Clock } from '../../core/clock.js'
import { keepAlive } from '../../core/keep-alive.js'
import type { Ms } from '../../core/time.js'
import { Turns } from '../../core/turns.js'
import type { StacksWarning } from './api.js'
import type { Outbox, OutboxEntry } from './backend.js'
import { isConflict } from './errors.js'
import { bookKey } from './names.js'
import { outside, type Scope, type Slot } from './scope.js'
import { WatcherLease } from './watcher-lease.js'
import type { DurableWatcher } from './watchers.js'

export interface DurablePumpOptions {
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

/** How many events are read at once. */
const BATCH = 100
/** How long progress may be kept in memory only: that much is told again after a crash. */
const SAVE_EVERY_MS: Ms = 50
/** How often to look where no wake-up came. */
const NET_MS: Ms = 1_000
/**
 * How often an event is told again whose handler lost against another transaction, and the longest pause between. About a minute:
 * losing says nothing about the event, and passing it would lose what it was to set in motion.
 */
const MAX_TRIES = 60
const MAX_PAUSE_MS: Ms = 1_000

/**
 * Tells one durable watcher its events, in commit order. Whoever takes the right to do so in a fleet does it; the others look
 * again when they are woken. Progress is stored after the handler, so a crash repeats events and loses none.
 */
export class DurablePump {
  readonly #options: DurablePumpOptions
  readonly #turns: Turns
  #running: Promise<void> | undefined
  #isAsked = false
  #isStopped = false
  #isBehind = false
  #onLook: (() => void)[] = []
  #waiters: Waiter[] = []
  #cancelNet: (() => void) | undefined

  constructor(options: DurablePumpOptions) {
    this.#options = options
    this.#turns = new Turns(options.clock)
  }

  get watcher(): DurableWatcher {
    return this.#options.watcher
  }

  /** Looks for events now, or once more when the look that is going on ends. */
  wake(): void {
    if (this.#isStopped) return
    this.#isAsked = true
    // Outside of whatever transaction or delivery woke it.
    this.#running ??= this.#options.runIn(outside(), () => this.#run())
  }

  /** Whether events were waiting when it looked last, and have not all been told since. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Looks for events, and resolves when it knows whether there are any. */
  begin(): Promise<void> {
    return new Promise((resolve) => {
      this.#onLook.push(resolve)
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
    this.#cancelNet?.()
    await this.#running
    this.#looked(false)
    this.#settle(() => true)
  }

  async #run(): Promise<void> {
    this.#cancelNet?.()
    // What was promised to be told is told before the process ends by itself.
    const release = this.#options.clock.isReal === true ? keepAlive() : undefined
    let pauseMs = NET_MS
    try {
      while (this.#isAsked && !this.#isStopped) {
        this.#isAsked = false
        const isOurs = await this.#pass()
        // Whoever has the right may have looked just before the newest event came.
        if (!isOurs) pauseMs = Math.min(NET_MS, this.#options.leaseMs / 2)
      }
    } catch (error) {
      this.#looked(this.#isBehind)
      this.#settle(() => true)
      const message = `Events cannot be told to the durable watcher "${this.watcher.name}"; it is tried again.`
      this.#options.warn({ code: 'DELIVERY_FAILED', message, error, watcher: this.watcher.name })
    } finally {
      release?.()
      this.#running = undefined
      if (!this.#isStopped) {
        if (this.#isAsked) this.wake()
        else this.#cancelNet = this.#options.clock.after(pauseMs, () => this.wake())
      }
    }
  }

  /** Tells everything that waits. False: another process has the right. */
  async #pass(): Promise<boolean> {
    const { outbox, watcher, holder, leaseMs } = this.#options
    // This look answers only those who were waiting when it began: the event of one who comes while the store is being asked may
    // have been committed after the store looked. That one has asked for another look.
    const waiting = new Set(this.#waiters)
    const isBehind = await outbox.isBehind(watcher.name)
    this.#looked(isBehind)
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
      if (await this.#tell(claim.cursor, lease)) return true
    } finally {
      lease.end()
    }
    this.#settle((waiter) => waiting.has(waiter))
    return false
  }

  /** False: the right was lost, and the process that took over tells the rest. */
  async #tell(from: number, lease: WatcherLease): Promise<boolean> {
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
      // One more than is told, to know whether that was all: who writes next waits only for a watcher that has nothing left to do.
      const entries = await outbox.read(watcher.name, cursor, BATCH + 1)
      const told = entries.slice(0, BATCH)
      for (const entry of told) {
        if (this.#isStopped) break
        if (!(await lease.isHeld())) return false
        if (!(await this.#handle(entry))) break
        cursor = entry.seq
        await this.#turns.due()
        const isLate = clock.monotonic() - savedAt >= SAVE_EVERY_MS
        if (isLate && entry !== told.at(-1) && !(await save(true))) return false
      }
      const isMore = entries.length > BATCH && !this.#isStopped
      if (!(await save(isMore))) return false
      if (!isMore) return true
    }
  }

  /** False: it was stopped before the event could be told. */
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
        await clock.sleep(Math.min(MAX_PAUSE_MS, 10 * 2 ** tries))
        continue
      }
      // A chain that was too long is told here, because who began it may be gone.
      if (scope.chain.refusal !== undefined) failure = { error: scope.chain.refusal }
      if (failure === undefined) return true
      const message = `The durable watcher "${watcher.name}" failed on a ${event.type} in ${bookKey(event)}; it goes on with the next event.`
      warn({ code: 'PHASE2_FAILED', message, error: failure.error, watcher: watcher.name })
      return true
    }
  }

  #looked(isBehind: boolean): void {
    this.#isBehind = isBehind
    for (const resolve of this.#onLook.splice(0)) resolve()
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
