import { functionOption, OptionTypeError } from '../options.js'
import { number, readOptions } from '../read-options.js'
import { describeValue } from '../text/describe-value.js'
import { peek } from '../text/safe-read.js'
import { MAX_TIMER_MS, type Random } from '../time/clock.js'
import type { Ms } from '../time/time.js'
import { type Jitter, type JitterShare, jitterOption, jitterRange, withJitter } from './jitter.js'
import { getDefaultRetryOptions } from './retry-defaults.js'
import type { RetryPolicyOptions } from './retry-policy.js'

/** No delay is longer: the largest that `setTimeout` accepts. Node fires a longer one after 1 ms. */
export const MAX_DELAY_MS: Ms = MAX_TIMER_MS

/** What a delay is when a custom backoff answers with nonsense. Long enough to do no harm, short enough to be noticed. */
const FALLBACK_DELAY_MS: Ms = 30_000

/** How long to wait before attempt + 1, given that `attempt` (from 1) has just failed. */
export interface Backoff {
  delay(attempt: number): Ms
  /** The shortest and longest that `delay` can answer, where that is known. */
  range?(attempt: number): DelayRange
}

/** The span in which chance places a wait. */
export interface DelayRange {
  readonly minMs: Ms
  readonly maxMs: Ms
}

/** Options of the built-in schedule. */
export interface ExponentialOptions {
  /** Delay after the first failure, > 0. Default 100. */
  readonly baseMs?: Ms | undefined
  /** No delay is longer; 0 means no cap but `MAX_DELAY_MS`. Default 30 000. */
  readonly maxMs?: Ms | undefined
  /** Each further delay is this many times longer, >= 1. Default 2. */
  readonly factor?: number | undefined
  /** Default full: anything from nothing to all of the delay. */
  readonly jitter?: Jitter | undefined
}

/** A backoff in any of the forms that an option takes. */
export type BackoffOption = Backoff | ((attempt: number) => Ms) | ExponentialOptions

/**
 * The delay of a work item before its next attempt: `base · factor^(attempt-1)`, at most `max`, minus the share that
 * chance takes. Always a whole number from 0 to `MAX_DELAY_MS`, and never throws: a policy comes off the wire, so a
 * field that makes no sense is read as the process-wide default. (Options given by a person are checked where they are
 * given.)
 * @example
 * ```ts
 * backoff(1, { base: 100, jitter: 0 }) // 100
 * backoff(2, { base: 100, jitter: 0 }) // 200
 * ```
 */
export function backoff(attempt: number, options?: RetryPolicyOptions, random: Random = Math.random): Ms {
  const { ceilingMs, jitter } = workSchedule(attempt, options)
  return Math.round(withJitter(ceilingMs, jitter, random))
}

/** The shortest and longest that `backoff` can answer for this attempt. */
export function backoffRange(attempt: number, options?: RetryPolicyOptions): DelayRange {
  const { ceilingMs, jitter } = workSchedule(attempt, options)
  const { minMs, maxMs } = jitterRange(ceilingMs, jitter)
  return { minMs: Math.round(minMs), maxMs: Math.round(maxMs) }
}

/**
 * The built-in schedule of streams: `baseMs · factor^(attempt-1)`, capped before chance is applied, floored to whole ms.
 * `path` is how errors name the options.
 */
export function exponential(
  options?: ExponentialOptions,
  random: Random = Math.random,
  path = 'exponential',
): Required<Backoff> {
  const { baseMs, maxMs, factor, jitter } = readOptions(path, options, {
    baseMs: number({ above: 0, default: 100 }),
    maxMs: number({ min: 0, default: 30_000 }),
    factor: number({ min: 1, default: 2 }),
    jitter: (at: string, value: unknown) => jitterOption(at, value, 'full'),
  })
  functionOption('random', random)
  const ceiling = (attempt: number) => grownDelay(baseMs, factor, maxMs === 0 ? MAX_DELAY_MS : maxMs, attempt)
  return Object.freeze({
    delay: (attempt: number) => Math.floor(withJitter(ceiling(attempt), jitter, random)),
    range: (attempt: number) => {
      const { minMs, maxMs: longestMs } = jitterRange(ceiling(attempt), jitter)
      return { minMs: Math.floor(minMs), maxMs: Math.floor(longestMs) }
    },
  })
}

/**
 * Reads a backoff option in any form. What comes back answers a whole number from 0 to `MAX_DELAY_MS` to every attempt
 * and never throws; a custom backoff that answers with nonsense is reported to `warn` and read as 30 s. `random` is for
 * the built-in schedule only: a custom backoff owns its randomness.
 */
export function resolveBackoff(
  path: string,
  given: BackoffOption | undefined,
  random: Random = Math.random,
  warn: (message: string) => void = () => {},
): Backoff {
  if (given === undefined) return exponential({}, random, path)
  if (typeof given === 'function') return guarded(path, given, warn)
  if (typeof given !== 'object' || given === null) {
    throw new OptionTypeError(
      path,
      'a function, an object with delay(attempt), or options of the built-in schedule',
      given,
    )
  }
  if (!('delay' in given)) return exponential(given, random, path)
  functionOption(`${path}.delay`, given.delay)
  return guarded(path, (attempt) => given.delay(attempt), warn)
}

/** Wraps a custom backoff so that its answer can be used as a delay whatever it is. */
function guarded(path: string, delayOf: (attempt: number) => unknown, report: (message: string) => void): Backoff {
  const warn = (message: string) => {
    try {
      report(message)
    } catch {
      // A logger that fails must not take the retry with it.
    }
  }
  return Object.freeze({
    delay(attempt: number): Ms {
      let answer: unknown
      try {
        answer = delayOf(attempt)
      } catch (error) {
        warn(
          `${path} threw for attempt ${attempt} (${describeValue(peek(error, 'message'))}); ${FALLBACK_DELAY_MS} ms are used instead.`,
        )
        return FALLBACK_DELAY_MS
      }
      if (typeof answer !== 'number' || Number.isNaN(answer)) {
        warn(
          `${path} must answer a number of milliseconds, got ${describeValue(answer)} for attempt ${attempt}; ${FALLBACK_DELAY_MS} ms are used instead.`,
        )
        return FALLBACK_DELAY_MS
      }
      return Math.floor(Math.min(Math.max(answer, 0), MAX_DELAY_MS))
    },
  })
}

/**
 * A wait that doubles with every failure: `baseMs`, `2·baseMs`, `4·baseMs` … for n = 0, 1, 2 …, at most `maxMs`, minus the
 * share that chance takes (none by default). For retries of our own that no user configures.
 */
export function doublingDelay(
  n: number,
  { baseMs, maxMs, jitter }: { readonly baseMs: Ms; readonly maxMs: Ms; readonly jitter?: Jitter },
  random: Random = Math.random,
): Ms {
  return withJitter(grownDelay(baseMs, 2, maxMs, n + 1), usableJitter(jitter) ?? 0, random)
}

function workSchedule(
  attempt: number,
  options: RetryPolicyOptions | undefined,
): { readonly ceilingMs: Ms; readonly jitter: JitterShare } {
  const defaults = getDefaultRetryOptions()
  const { base, factor, max, jitter } = options ?? {}
  return {
    ceilingMs: grownDelay(
      usable(base, 0) ? base : defaults.base,
      usable(factor, 1) ? factor : defaults.factor,
      usable(max, 0) ? max : defaults.max,
      attempt,
    ),
    jitter: usableJitter(jitter) ?? defaults.jitter,
  }
}

/** `base · factor^(attempt-1)`, clamped before chance touches it: `Infinity · 0` would be no number. */
function grownDelay(base: Ms, factor: number, cap: Ms, attempt: number): Ms {
  // Bounded, because 1 ** Infinity is NaN; long before this every growing schedule has met its cap.
  const failures = attempt > 1 ? Math.min(Math.floor(attempt), 1_000_000) - 1 : 0
  if (base === 0) return 0
  return Math.min(base * factor ** failures, cap, MAX_DELAY_MS)
}

function usable(value: number | undefined, min: number): value is number {
  return typeof value === 'number' && value >= min
}

function usableJitter(jitter: Jitter | undefined): JitterShare | undefined {
  if (jitter === true || jitter === 'full') return 'full'
  if (jitter === false) return 0
  return typeof jitter === 'number' && jitter >= 0 && jitter <= 1 ? jitter : undefined
}
