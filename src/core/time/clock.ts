import { OptionTypeError } from '../options.js'
import type { At, Ms } from './time.js'

/**
 * Time as a port. Everything that reads the time, waits or times out does it through a clock that was handed in, so that
 * a week of retries is simulated in a second.
 */
export interface Clock {
  /** Wall time, epoch ms. May jump when the machine's clock is set; use `monotonic` to measure. */
  now(): At
  /** Milliseconds since some fixed moment; never decreases. */
  monotonic(): Ms
  /** Calls `run` once after `ms`. Returns a function that cancels it; cancelling twice, or late, is harmless. */
  after(ms: Ms, run: () => void): () => void
  /** Resolves after `ms`; rejects with the signal's reason as soon as that aborts. */
  sleep(ms: Ms, signal?: AbortSignal): Promise<void>
  /**
   * Resolves when the event loop has had a turn: timers, sockets and signals that were waiting have been served. Only clocks
   * of real time have it; under a simulated one nothing waits for a turn.
   */
  turn?(): Promise<void>
  /** Its timers run in real time: a caller that waits for one has to keep the process alive. */
  readonly isReal?: true
}

/** Chance as a port: a number in `[0, 1)`. */
export type Random = () => number

/** The longest delay that `setTimeout` accepts; Node fires a longer one after 1 ms. */
export const MAX_TIMER_MS = 2_147_483_647

/** Real time. Its timers do not keep the process alive: callers with a reason to stay alive hold it explicitly. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  isReal: true as const,
  monotonic: () => performance.now(),
  after: afterRealTime,
  sleep: (ms: Ms, signal?: AbortSignal) => sleepOn(afterRealTime, ms, signal),
  turn: realTurn,
})

/**
 * Lifts a plain `now: () => number` to a clock: its time, real timers. A `Clock` is returned as it is.
 * The monotonic time follows `now` and holds still while `now` goes backwards, so that leases measured on it neither
 * stretch nor expire early when the wall clock is set.
 */
export function clockFrom(now: (() => At) | Clock): Clock {
  if (typeof now !== 'function') {
    if (isClock(now)) return now
    throw new OptionTypeError('clockFrom(now)', 'a function that returns epoch ms, or a Clock', now)
  }
  if (now === Date.now) return systemClock
  return Object.freeze({
    now,
    isReal: true as const,
    monotonic: neverBackwards(now),
    after: afterRealTime,
    sleep: (ms: Ms, signal?: AbortSignal) => sleepOn(afterRealTime, ms, signal),
    turn: realTurn,
  })
}

/** Whether it has every method of a clock. */
export function isClock(value: unknown): value is Clock {
  if (typeof value !== 'object' || value === null) return false
  const clock = value as Partial<Clock>
  return [clock.now, clock.monotonic, clock.after, clock.sleep].every((method) => typeof method === 'function')
}

/** Guards against time going backwards: what it returns never decreases; a backward jump is absorbed, not replayed. */
export function neverBackwards(now: () => number): () => number {
  let last = -Infinity
  let shift = 0
  return () => {
    const reading = now() + shift
    if (reading >= last) {
      last = reading
      return reading
    }
    // The clock was set back: keep counting from where we were, at its new pace.
    shift += last - reading
    return last
  }
}

/** `sleep` in terms of `after`, the same for every clock. */
export function sleepOn(after: Clock['after'], ms: Ms, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const onAbort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function realTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function afterRealTime(ms: Ms, run: () => void): () => void {
  const due = performance.now() + ms
  let timer: NodeJS.Timeout
  const arm = () => {
    const left = due - performance.now()
    // A wait beyond the timer's range is taken in steps.
    timer = left > MAX_TIMER_MS ? setTimeout(arm, MAX_TIMER_MS) : setTimeout(run, Math.max(0, left))
    timer.unref()
  }
  arm()
  return () => clearTimeout(timer)
}
