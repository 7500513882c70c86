import { setImmediate as realSetImmediate, setTimeout as realSetTimeout } from 'node:timers'
import { Heap } from '../core/collections/heap.js'
import { MillraceError } from '../core/error.js'
import { OptionRangeError, OptionTypeError } from '../core/options.js'
import { type Clock, sleepOn } from '../core/time/clock.js'
import type { At, Ms } from '../core/time/time.js'

/** Options of {@link FakeClock}. */
export interface FakeClockOptions {
  /** The wall time at the beginning, epoch ms. Default: 2026-01-01T00:00:00Z, so runs repeat exactly. */
  readonly startAt?: At
  /**
   * How many turns of the event loop in a row must pass without a timer being set or cancelled before the clock believes
   * that everything has settled. Default: 4. Raise it for code that hops through more `setImmediate`s than that.
   */
  readonly quietTurns?: number
  /**
   * Whether no real I/O is in flight. The clock cannot see sockets and files; a test on a real server counts its calls and
   * answers here, and time then stands still until they are answered. Default: always at rest.
   */
  readonly resting?: () => boolean
  /** After so many timers, at one instant or on the way to idleness, the clock says that it cannot come to rest. Default: 100,000. */
  readonly maxFired?: number
}

/** What `FakeClock.setTimeout` returns: give it to `clearTimeout`. */
export interface FakeTimer {
  /** When it fires, in the clock's monotonic time. */
  readonly dueMs: Ms
}

interface Timer extends FakeTimer {
  readonly order: number
  readonly run: () => void
  index: number
}

const DEFAULT_START_AT: At = Date.UTC(2026, 0, 1)
const MAX_TURNS = 10_000
/** In real time: a server that does not answer for so long will not answer. */
const MAX_BUSY_MS: Ms = 30_000
/** After so many turns without an answer of a server, the clock polls once a millisecond only. */
const MAX_BUSY_TURNS = 50

/**
 * Time that moves only when a test moves it.
 *
 * `advance(ms)` fires what falls due in between, earliest first and in the order of setting where the instant is the
 * same, and lets promise chains and `setImmediate`s come to rest before each timer and after the last one. Real I/O (files,
 * sockets) is waited for only where `resting` reports it. The four methods of `Clock` work when detached, so `now: clock.now` is fine.
 *
 * @example
 * ```ts
 * const clock = new FakeClock()
 * const nap = clock.sleep(60_000)
 * await clock.advance(60_000)
 * await nap // no real time has passed
 * ```
 */
export class FakeClock implements Clock {
  #monotonicMs: Ms = 0
  /** Wall time minus monotonic time; `jump` changes it. */
  #offset: At
  #set = 0
  #changes = 0
  #moving: Promise<void> = Promise.resolve()
  readonly #quietTurns: number
  readonly #resting: () => boolean
  readonly #maxFired: number
  readonly #timers = new Heap<Timer>(
    (a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order),
    (timer, index) => {
      timer.index = index
    },
  )

  constructor(options: FakeClockOptions = {}) {
    const { startAt = DEFAULT_START_AT, quietTurns = 4, resting = () => true, maxFired = 100_000 } = options
    if (!Number.isFinite(startAt)) throw new OptionRangeError('startAt', 'a finite number', startAt)
    if (!(Number.isInteger(quietTurns) && quietTurns >= 1))
      throw new OptionRangeError('quietTurns', 'an integer >= 1', quietTurns)
    if (typeof resting !== 'function') throw new OptionTypeError('resting', 'a function', resting)
    if (!(Number.isInteger(maxFired) && maxFired >= 1))
      throw new OptionRangeError('maxFired', 'an integer >= 1', maxFired)
    this.#offset = startAt
    this.#maxFired = maxFired
    this.#quietTurns = quietTurns
    this.#resting = resting
  }

  readonly now = (): At => this.#monotonicMs + this.#offset

  readonly monotonic = (): Ms => this.#monotonicMs

  readonly after = (ms: Ms, run: () => void): (() => void) => {
    const timer = this.#arm(ms, run)
    return () => this.#disarm(timer)
  }

  readonly sleep = (ms: Ms, signal?: AbortSignal): Promise<void> => sleepOn(this.after, ms, signal)

  /** `after` in the shape of the platform's function. */
  readonly setTimeout = (run: () => void, ms: Ms = 0): FakeTimer => this.#arm(ms, run)

  /** Cancels what `setTimeout` set; a timer that has fired, or none at all, is harmless. */
  readonly clearTimeout = (timer: FakeTimer | undefined): void => {
    if (timer !== undefined) this.#disarm(timer as Timer)
  }

  /** How many timers wait to fire. A clean shutdown leaves 0. */
  get pending(): number {
    return this.#timers.size
  }

  /** The wall time at which the next timer fires; `undefined` when none ever will. */
  nextDueAt(): At | undefined {
    const next = this.#timers.peek()
    return next === undefined || next.dueMs === Infinity ? undefined : next.dueMs + this.#offset
  }

  /**
   * Moves time forward by `ms` and fires everything that falls due, also what is set on the way.
   * Calls queue up behind each other. Rejects with the error of a timer that throws; time then stands at that timer.
   */
  advance(ms: Ms): Promise<void> {
    if (!(ms >= 0 && ms < Infinity))
      return Promise.reject(
        new OptionRangeError('advance(ms)', 'a finite number >= 0 (jump(ms) sets wall time back)', ms),
      )
    return this.#move(async () => {
      const until = this.#monotonicMs + ms
      let firedHere = 0
      await this.#rest()
      for (;;) {
        const next = this.#timers.peek()
        if (next === undefined || next.dueMs > until) break
        firedHere = next.dueMs > this.#monotonicMs ? 1 : firedHere + 1
        if (firedHere > this.#maxFired) throw neverIdle(`${this.#maxFired} timers fired without time passing`)
        await this.#fire(next)
      }
      this.#monotonicMs = until
    })
  }

  /**
   * Moves from timer to timer until none is left, however far in the future they are. Something that keeps setting timers
   * (a poll, a heartbeat) never lets the clock become idle: after 100 000 timers that is an error; stop it, or `advance`.
   */
  runUntilIdle(): Promise<void> {
    return this.#move(async () => {
      await this.#rest()
      for (let fired = 0; this.nextDueAt() !== undefined; fired += 1) {
        if (fired >= this.#maxFired)
          throw neverIdle(`runUntilIdle fired ${this.#maxFired} timers and ${this.pending} still wait`)
        await this.#fire(this.#timers.peek()!)
      }
    })
  }

  /** Lets everything run that can run without time passing. Timers do not fire, not even those due now. */
  settle(): Promise<void> {
    return this.#move(() => this.#rest())
  }

  /** Sets wall time forward (or back, when negative) as an operator or NTP would: no timer moves, monotonic time stands. */
  jump(ms: Ms): void {
    if (!Number.isFinite(ms)) throw new OptionRangeError('jump(ms)', 'a finite number', ms)
    this.#offset += ms
  }

  #arm(ms: Ms, run: () => void): Timer {
    if (typeof run !== 'function') throw new OptionTypeError('after(ms, run)', 'called with a function', run)
    if (typeof ms !== 'number' || Number.isNaN(ms))
      throw new OptionRangeError('after(ms, run)', 'called with a number of ms', ms)
    const timer: Timer = { dueMs: this.#monotonicMs + Math.max(0, ms), order: this.#set++, run, index: -1 }
    this.#timers.push(timer)
    this.#changes += 1
    return timer
  }

  #disarm(timer: Timer): void {
    if (timer.index < 0) return
    this.#timers.removeAt(timer.index)
    this.#changes += 1
  }

  async #fire(timer: Timer): Promise<void> {
    this.#timers.removeAt(timer.index)
    this.#monotonicMs = timer.dueMs
    timer.run()
    await this.#rest()
  }

  // The engine does not say whether promise chains are at rest. Each setImmediate runs after all microtasks, and a chain
  // that is still going somewhere sooner or later touches a timer: so a few quiet turns in a row count as rest.
  async #rest(): Promise<void> {
    let quiet = 0
    let busySince: number | undefined
    let busyTurns = 0
    for (let turns = 0; quiet < this.#quietTurns; turns += 1) {
      if (turns >= MAX_TURNS) throw neverIdle(`timers were still being set after ${MAX_TURNS} turns of the event loop`)
      const before = this.#changes
      await new Promise<void>((resolve) => {
        // The server may need this core to answer.
        if (busyTurns < MAX_BUSY_TURNS) realSetImmediate(resolve)
        else realSetTimeout(resolve, 1)
      })
      quiet = this.#changes === before ? quiet + 1 : 0
      if (this.#resting()) {
        busySince = undefined
        busyTurns = 0
        continue
      }
      quiet = 0
      turns = 0
      busyTurns += 1
      busySince ??= performance.now()
      if (performance.now() - busySince > MAX_BUSY_MS) throw neverIdle(`real I/O was in flight for ${MAX_BUSY_MS} ms`)
    }
  }

  // One move at a time: two that overlap would fire timers of the later one while the earlier one believes all is at rest.
  #move(step: () => Promise<void>): Promise<void> {
    const moved = this.#moving.then(step)
    this.#moving = moved.then(
      () => undefined,
      () => undefined,
    )
    return moved
  }
}

function neverIdle(what: string): MillraceError {
  return new MillraceError(
    'CLOCK_NEVER_IDLE',
    `The fake clock cannot come to rest: ${what}. Something sets a new timer each time one fires; ` +
      'stop it first, give it a delay above 0, or use advance(ms) with a limit.',
  )
}
