import { functionOption } from '../options.js'
import { processWide } from '../process/process-wide.js'
import type { Random } from '../time/clock.js'
import type { At, MaybePromise, Ms } from '../time/time.js'
import {
  checkRetryPolicy,
  DEFAULT_RETRY_OPTIONS,
  mergeRetryPolicies,
  type RetryPolicy,
  type RetryPolicyOptions,
} from './retry-policy.js'

/** Where a `retry` stands. Handed to the operation and to every hook. */
export interface RetryState {
  readonly startAt: At
  /** The attempt that runs or has just ended, from 1. */
  readonly attempt: number
  /** Attempts in all. */
  readonly attempts: number
  readonly lastAttemptAt: At
  readonly lastError?: unknown
}

/** What `retry` accepts besides its policy, and what process-wide defaults may hold. */
export interface RetryHooks {
  /**
   * Asked after each failure: `false` stops, a number is a minimum pause in ms, anything else leaves it to the backoff.
   * Default: a `RetryAbort` stops. If it throws, `retry` rejects with that.
   */
  readonly on?: ((error: unknown, state: RetryState) => MaybePromise<number | boolean | void>) | undefined
  /** Called with the result. Like the other two it only watches: it is awaited, and what it throws is ignored. */
  readonly onSuccess?: ((result: unknown, state: RetryState) => unknown) | undefined
  /** Called with a failure that will be tried again, before the pause. */
  readonly onRetry?: ((error: unknown, state: RetryState) => unknown) | undefined
  /** Called once, with the failure that ends it. */
  readonly onError?: ((error: unknown, state: RetryState) => unknown) | undefined
  /** How to pause. Default: real time, which keeps the process alive. */
  readonly sleep?: ((ms: Ms, signal?: AbortSignal) => Promise<unknown>) | undefined
  readonly random?: Random | undefined
  readonly now?: (() => At) | undefined
}

/** Process-wide defaults of `retry`, `backoff` and the retry policy of work. */
export type DefaultRetryOptions = RetryPolicyOptions & RetryHooks

/** The names of the hooks, for callers that check options which contain them. */
export const RETRY_HOOKS = Object.freeze(['on', 'onSuccess', 'onRetry', 'onError', 'sleep', 'random', 'now'] as const)

const processDefaults = processWide<{ set: (RetryPolicy & RetryHooks) | undefined }>('retry-defaults', () => ({
  set: undefined,
}))

/**
 * Changes the process-wide defaults: the given fields are merged over those set earlier. Without an argument everything
 * is back to `DEFAULT_RETRY_OPTIONS`. Items that are already enqueued keep the policy they travel with.
 * @example
 * ```ts
 * setDefaultRetryOptions({ attempts: 5, base: 200 })
 * ```
 */
export function setDefaultRetryOptions(options?: DefaultRetryOptions): void {
  const defaults = processDefaults()
  if (options === undefined) {
    defaults.set = undefined
    return
  }
  const policy = checkRetryPolicy('setDefaultRetryOptions', options, RETRY_HOOKS)
  const current = getDefaultRetryOptions()
  defaults.set = Object.freeze({
    ...mergeRetryPolicies(current, policy),
    ...pickHooks(current),
    ...checkHooks('setDefaultRetryOptions', options),
  })
}

/** The process-wide defaults as they stand: the whole policy, and the hooks that were set. */
export function getDefaultRetryOptions(): RetryPolicy & RetryHooks {
  return processDefaults().set ?? DEFAULT_RETRY_OPTIONS
}

/** Checks that every hook is a function and returns those that were given. */
export function checkHooks(path: string, given: RetryHooks): RetryHooks {
  const hooks = pickHooks(given)
  for (const [name, hook] of Object.entries(hooks)) functionOption(`${path}.${name}`, hook)
  return hooks
}

function pickHooks(from: RetryHooks): RetryHooks {
  return Object.fromEntries(RETRY_HOOKS.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]))
}
