import { abortReason, isRetryAbort } from '../failure/control-errors.js'
import { functionOption, OptionTypeError } from '../options.js'
import { peek } from '../text/safe-read.js'
import { MAX_TIMER_MS, sleepOn } from '../time/clock.js'
import type { MaybePromise, Ms } from '../time/time.js'
import { backoff } from './backoff.js'
import { checkHooks, getDefaultRetryOptions, RETRY_HOOKS, type RetryHooks, type RetryState } from './retry-defaults.js'
import { checkRetryPolicy, mergeRetryPolicies, type RetryPolicy, type RetryPolicyOptions } from './retry-policy.js'

/** Options of `retry`. What is not given comes from `getDefaultRetryOptions()`. */
export interface RetryOptions<T = unknown, E = unknown> extends RetryPolicyOptions, Omit<RetryHooks, 'onSuccess'> {
  readonly onSuccess?: ((result: T, state: RetryState) => unknown) | undefined
  /** Returned instead of throwing when all attempts failed. Its presence counts: `undefined` is a value too. */
  readonly errorResult?: E
  /** Stops between attempts and cuts a pause short; `retry` then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Calls `fn` until it succeeds, up to `attempts` times, with a growing, jittered pause in between. Rejects with the last
 * error; a `RetryAbort` stops immediately, and its cause is what is thrown.
 * @example
 * ```ts
 * const user = await retry(() => fetchUser(id), { attempts: 5, base: 200 })
 * ```
 */
export async function retry<T, E = never>(
  fn: (state: RetryState) => MaybePromise<T>,
  options: RetryOptions<T, E> = {},
): Promise<T | E> {
  functionOption('retry(fn)', fn)
  const { policy, hooks } = resolveRetryOptions('retry', options)
  const { signal } = options
  const { on = stopOnAbort, sleep = sleepAwake, random = Math.random, now = Date.now } = hooks
  const startAt = now()
  let state: RetryState = { startAt, attempt: 1, attempts: policy.attempts, lastAttemptAt: startAt }

  for (;;) {
    if (signal?.aborted) return await stop(hooks, signal.reason, state)
    let failure: unknown
    try {
      const result = await fn(state)
      await callHook(hooks.onSuccess, result, state)
      return result
    } catch (error) {
      failure = error
    }
    state = { ...state, lastError: failure }
    const answer = await on(failure, state)
    if (answer === false || state.attempt >= policy.attempts) {
      // Where `on` goes on after an abort, what ran out of attempts is the abort itself.
      const error = answer === false ? abortReason(failure) : failure
      await callHook(hooks.onError, error, state)
      if ('errorResult' in options) return options.errorResult as E
      throw error
    }
    await callHook(hooks.onRetry, failure, state)
    const pauseMs = Math.max(atLeast(answer), backoff(state.attempt, policy, random))
    try {
      await sleep(pauseMs, signal)
    } catch (error) {
      // An abort cuts the pause short, whatever the sleep rejects with; a sleep that just fails is no abort.
      return await stop(hooks, signal?.aborted ? signal.reason : error, state)
    }
    state = { ...state, attempt: state.attempt + 1, lastAttemptAt: now() }
  }
}

/** Checks the options of a `retry` (or of an option that is one) and completes them from the process-wide defaults. */
export function resolveRetryOptions<T, E>(
  path: string,
  options: RetryOptions<T, E>,
): { readonly policy: RetryPolicy; readonly hooks: RetryHooks } {
  const checked = checkRetryPolicy(path, options, [...RETRY_HOOKS, 'errorResult', 'signal'])
  // By shape: a signal of another realm or a polyfill is one too.
  if (options.signal !== undefined && typeof peek(options.signal, 'addEventListener') !== 'function') {
    throw new OptionTypeError(`${path}.signal`, 'an AbortSignal', options.signal)
  }
  const defaults = getDefaultRetryOptions()
  // `onSuccess` is called with what `fn` returned, so its own type of T holds.
  const hooks = checkHooks(path, options as RetryHooks)
  return { policy: mergeRetryPolicies(defaults, checked), hooks: { ...checkHooks(path, defaults), ...hooks } }
}

function stopOnAbort(error: unknown): boolean | number {
  return isRetryAbort(error) ? false : 0
}

/** An abort is the caller's own wish, so `errorResult` does not turn it into a success. */
async function stop(hooks: RetryHooks, reason: unknown, state: RetryState): Promise<never> {
  await callHook(hooks.onError, reason, state)
  throw reason
}

/** A watcher cannot change the outcome: if it could, a broken logger would repeat work that had succeeded. */
async function callHook<V>(
  hook: ((value: V, state: RetryState) => unknown) | undefined,
  value: V,
  state: RetryState,
): Promise<void> {
  try {
    await hook?.(value, state)
  } catch {
    // Its own business.
  }
}

function atLeast(answer: number | boolean | void): Ms {
  return typeof answer === 'number' && answer > 0 ? Math.min(answer, MAX_TIMER_MS) : 0
}

/** Real time on a timer that holds the process: a caller awaits the result, and nothing else may be keeping it alive. */
function sleepAwake(ms: Ms, signal?: AbortSignal): Promise<void> {
  return sleepOn(
    (wait, run) => {
      const timer = setTimeout(run, wait)
      return () => clearTimeout(timer)
    },
    ms,
    signal,
  )
}
