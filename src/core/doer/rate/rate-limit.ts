import type { Ms } from '../../time/time.js'
import { unreachable } from '../../unreachable.js'

/**
 * How starts are counted against a limit:
 *
 * - `fixed-window`: at most `limit` from the first start until `window` later. Cheap; two bursts may meet at the border.
 * - `sliding-window`: what was used in the window before counts too, less and less as the present one goes on.
 * - `token-bucket`: a burst of `limit`, refilled evenly at `limit` per `window`.
 */
export type RateLimitAlgorithm = 'fixed-window' | 'sliding-window' | 'token-bucket'

/** Every algorithm, the default first. */
export const RATE_LIMIT_ALGORITHMS: readonly RateLimitAlgorithm[] = Object.freeze([
  'fixed-window',
  'sliding-window',
  'token-bucket',
])

/** At most `limit` starts per `window` ms. */
export interface RateLimitRule {
  readonly limit: number
  readonly window: Ms
  readonly algorithm: RateLimitAlgorithm
}

/** What is remembered of one bucket. All three numbers mean a little something else to each algorithm. */
export interface RateLimitState {
  /** When the present window began; for a token bucket, when `used` was right. */
  readonly at: Ms
  /** Permits used in this window; for a token bucket, those not yet refilled (a fraction). */
  readonly used: number
  /** Permits used in the window before this one; only a sliding window looks at it. */
  readonly before: number
}

/** The answer to "how many of these may start?" */
export interface RateLimitAnswer {
  /** How many of the wanted permits were granted. */
  readonly granted: number
  /** How long until one more may be granted; 0 where all wanted were. */
  readonly retryAfterMs: Ms
  /** The bucket afterwards. */
  readonly state: RateLimitState
  /** From then on the state says no more than none at all would. */
  readonly staleAfterMs: Ms
}

/** A sum of fractions may miss a whole number by this much. */
const SLACK = 1e-6

/** Takes up to `want` permits out of a bucket at `now`. A permit that is refused costs nothing. */
export function takePermits(
  rule: RateLimitRule,
  state: RateLimitState | undefined,
  now: Ms,
  want: number,
): RateLimitAnswer {
  const known = isUsable(rule, state, now) ? state : undefined
  // Another process's clock may be ahead of ours: its present then is ours, and the wait is that much longer.
  const present = Math.max(now, known?.at ?? now)
  const answer = takeAt(rule, known, present, want)
  const ahead = present - now
  return {
    ...answer,
    retryAfterMs: answer.retryAfterMs > 0 ? answer.retryAfterMs + ahead : 0,
    staleAfterMs: Math.max(1, Math.ceil(answer.staleAfterMs + ahead)),
  }
}

/** Puts permits back that were not used after all, unless their window is over and nothing is left to put back into. */
export function returnPermits(rule: RateLimitRule, state: RateLimitState, count: number, windowAt: Ms): RateLimitState {
  if (rule.algorithm !== 'token-bucket' && state.at !== windowAt) return state
  return { ...state, used: Math.max(0, state.used - count) }
}

/** A bucket further in the future than one window comes from a clock that was set since: it would block for ages. */
function isUsable(rule: RateLimitRule, state: RateLimitState | undefined, now: Ms): boolean {
  return state !== undefined && state.at - now <= rule.window
}

function takeAt(rule: RateLimitRule, state: RateLimitState | undefined, now: Ms, want: number): RateLimitAnswer {
  switch (rule.algorithm) {
    case 'fixed-window':
      return takeFixed(rule, state, now, want)
    case 'sliding-window':
      return takeSliding(rule, state, now, want)
    case 'token-bucket':
      return takeToken(rule, state, now, want)
    default:
      return unreachable(rule.algorithm)
  }
}

function takeFixed({ limit, window }: RateLimitRule, state: RateLimitState | undefined, now: Ms, want: number) {
  const { at, used } = state !== undefined && now < state.at + window ? state : { at: now, used: 0 }
  const granted = grant(want, limit - used)
  const left = at + window - now
  return {
    granted,
    retryAfterMs: granted < want ? left : 0,
    state: { at, used: used + granted, before: 0 },
    staleAfterMs: left,
  }
}

function takeSliding({ limit, window }: RateLimitRule, state: RateLimitState | undefined, now: Ms, want: number) {
  // Windows are counted from the epoch, so that all processes speak of the same ones.
  const at = Math.floor(now / window) * window
  const windowsAgo = state === undefined ? Infinity : Math.round((at - state.at) / window)
  const { used, before } = windowsAgo <= 0 ? state! : { used: 0, before: windowsAgo === 1 ? state!.used : 0 }
  const elapsed = now - at
  const granted = grant(want, limit - used - before * (1 - elapsed / window))
  return {
    granted,
    retryAfterMs: granted < want ? slidingWait(limit, window, used + granted, before, elapsed) : 0,
    state: { at, used: used + granted, before },
    staleAfterMs: 2 * window - elapsed,
  }
}

/** When the weight of the window before has faded enough for one more; if not in this window, then in the next. */
function slidingWait(limit: number, window: Ms, used: number, before: number, elapsed: Ms): Ms {
  const room = limit - 1 - used
  if (room >= 0) return Math.max(1, window * (1 - room / before) - elapsed)
  return window - elapsed + Math.max(0, window * (1 - (limit - 1) / used))
}

function takeToken({ limit, window }: RateLimitRule, state: RateLimitState | undefined, now: Ms, want: number) {
  const perMs = limit / window
  const owed = state === undefined ? 0 : Math.max(0, state.used - (now - state.at) * perMs)
  const granted = grant(want, limit - owed)
  const used = owed + granted
  return {
    granted,
    retryAfterMs: granted < want ? Math.max(0, used + 1 - limit) / perMs : 0,
    state: { at: now, used, before: 0 },
    staleAfterMs: used / perMs,
  }
}

function grant(want: number, room: number): number {
  return Math.max(0, Math.min(want, Math.floor(room + SLACK)))
}
