import type { Mutable } from '../mutable.js'
import { numberOption, optionsObject } from '../options.js'
import { MAX_TIMER_MS } from '../time/clock.js'
import type { Ms } from '../time/time.js'
import { type Jitter, jitterOption } from './jitter.js'

/** How often work is tried and how long it waits in between. Plain data: it travels with each item. */
export interface RetryPolicy {
  /** Attempts in all, the first included. */
  readonly attempts: number
  /** Wait after the first failure. */
  readonly base: Ms
  /** Each further wait is this many times longer. */
  readonly factor: number
  /** No wait is longer. */
  readonly max: Ms
  /** Share of the wait that is left to chance, 0 to 1. */
  readonly jitter: number
}

/** A policy as people give it: every field optional, `undefined` meaning "as the level above says". */
export interface RetryPolicyOptions {
  /** Attempts in all, the first included: an integer >= 1, or `Infinity`. Default 3. */
  readonly attempts?: number | undefined
  /** Wait after the first failure. Default 1000. */
  readonly base?: Ms | undefined
  /** Each further wait is this many times longer, >= 1. Default 2. */
  readonly factor?: number | undefined
  /** No wait is longer; `Infinity` for no limit but the timer's. Default 30 000. */
  readonly max?: Ms | undefined
  /** Share of the wait that is left to chance. Default 0.5. */
  readonly jitter?: Jitter | undefined
}

/** The names of the fields of a policy, for callers that check options which contain one. */
const RETRY_POLICY_FIELDS = Object.freeze(['attempts', 'base', 'factor', 'max', 'jitter'] as const)

/** The default: 3 attempts, from 1 s doubling up to 30 s, half of it left to chance. */
export const DEFAULT_RETRY_OPTIONS: RetryPolicy = Object.freeze({
  attempts: 3,
  base: 1000,
  factor: 2,
  max: 30_000,
  jitter: 0.5,
})

/**
 * Checks a policy and returns the fields that were given, as numbers that survive JSON (an infinite `attempts` becomes
 * the largest safe integer). Errors name the field under `path`, and say what is allowed. Other fields are refused unless
 * `alsoAllowed` names them.
 */
export function checkRetryPolicy(
  path: string,
  given: RetryPolicyOptions | undefined,
  alsoAllowed: readonly string[] = [],
): Partial<RetryPolicy> {
  const { attempts, base, factor, max, jitter } = optionsObject(path, given, [
    ...RETRY_POLICY_FIELDS,
    // Names of a caller that extends the policy, which this type does not know.
    ...(alsoAllowed as readonly never[]),
  ])
  const checked: Partial<Mutable<RetryPolicy>> = {}
  if (attempts !== undefined) {
    const given = numberOption(`${path}.attempts`, attempts, { integer: true, min: 1, infinite: true })
    checked.attempts = Math.min(given, Number.MAX_SAFE_INTEGER)
  }
  if (base !== undefined) checked.base = numberOption(`${path}.base`, base, { min: 0 })
  if (factor !== undefined) checked.factor = numberOption(`${path}.factor`, factor, { min: 1 })
  if (max !== undefined)
    checked.max = Math.min(numberOption(`${path}.max`, max, { min: 0, infinite: true }), MAX_TIMER_MS)
  if (jitter !== undefined) {
    // As a share, full jitter is 1: it spreads over the same range, and the policy stays plain numbers on the wire.
    const share = jitterOption(`${path}.jitter`, jitter, 0)
    checked.jitter = share === 'full' ? 1 : share
  }
  return checked
}

/** Merges policies field by field, later ones winning, over `lowest`. They are taken as already checked. */
export function mergeRetryPolicies(
  lowest: RetryPolicy,
  ...layers: readonly (Partial<RetryPolicy> | undefined)[]
): RetryPolicy {
  const merged: Mutable<RetryPolicy> = { ...pick(lowest) }
  for (const layer of layers) {
    for (const field of RETRY_POLICY_FIELDS) merged[field] = layer?.[field] ?? merged[field]
  }
  return Object.freeze(merged)
}

function pick(policy: RetryPolicy): RetryPolicy {
  const { attempts, base, factor, max, jitter } = policy
  return { attempts, base, factor, max, jitter }
}
