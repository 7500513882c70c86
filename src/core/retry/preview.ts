import { functionOption, numberOption, optionsObject } from '../options.js'
import { isObject } from '../text/safe-read.js'
import type { Random } from '../time/clock.js'
import type { At, Ms } from '../time/time.js'
import { type BackoffOption, backoff, backoffRange, type DelayRange, resolveBackoff } from './backoff.js'
import { getDefaultRetryOptions } from './retry-defaults.js'
import { checkRetryPolicy, mergeRetryPolicies, type RetryPolicyOptions } from './retry-policy.js'

/** The retry policy of a stream, as far as times go. */
export interface StreamPolicyOptions {
  /** Deliveries in all. Default 5. */
  readonly maxAttempts?: number | undefined
  readonly backoff?: BackoffOption | undefined
}

/** Options of `preview`. */
export interface PreviewOptions {
  /** One draw of chance instead of the whole range. */
  readonly random?: Random | undefined
  /** When the first attempt starts. Given, each attempt also has its instants. */
  readonly startAt?: At | undefined
  /** Attempts to list at most; a policy may have no end. Default 100. */
  readonly limit?: number | undefined
}

/** One attempt of a policy whose every attempt fails immediately. */
export interface PreviewedAttempt {
  readonly attempt: number
  /** The wait before it. */
  readonly waitMs: DelayRange
  /** Since the first attempt. */
  readonly sinceStartMs: DelayRange
  /** Its earliest and latest start, when `startAt` is known. */
  readonly earliestAt?: At
  readonly latestAt?: At
}

/**
 * When a policy would try: every attempt with the wait before it and the time since the first, as ranges where chance has
 * a say. It counts from failure to failure, so the time that the attempts themselves take comes on top.
 * @example
 * ```ts
 * preview({ attempts: 3, base: 1000, jitter: 0 }).map((a) => a.sinceStartMs.maxMs) // [0, 1000, 3000]
 * ```
 */
export function preview(
  policy: RetryPolicyOptions | StreamPolicyOptions = {},
  options: PreviewOptions = {},
): readonly PreviewedAttempt[] {
  const { random, startAt, limit } = optionsObject('preview', options, ['random', 'startAt', 'limit'])
  if (startAt !== undefined) numberOption('preview.startAt', startAt)
  if (random !== undefined) functionOption('preview.random', random)
  const { attempts, waitAfter } = isStreamPolicy(policy) ? ofStream(policy, random) : ofWork(policy, random)
  const rows = Math.min(attempts, numberOption('preview.limit', limit, { integer: true, min: 1, default: 100 }))
  const listed: PreviewedAttempt[] = []
  let waitMs: DelayRange = { minMs: 0, maxMs: 0 }
  let sinceStartMs = waitMs
  for (let attempt = 1; attempt <= rows; attempt += 1) {
    const instants =
      startAt === undefined ? {} : { earliestAt: startAt + sinceStartMs.minMs, latestAt: startAt + sinceStartMs.maxMs }
    listed.push({ attempt, waitMs, sinceStartMs, ...instants })
    waitMs = waitAfter(attempt)
    sinceStartMs = { minMs: sinceStartMs.minMs + waitMs.minMs, maxMs: sinceStartMs.maxMs + waitMs.maxMs }
  }
  return listed
}

interface Waits {
  readonly attempts: number
  readonly waitAfter: (attempt: number) => DelayRange
}

function isStreamPolicy(policy: RetryPolicyOptions | StreamPolicyOptions): policy is StreamPolicyOptions {
  return isObject(policy) && ('maxAttempts' in policy || 'backoff' in policy)
}

function ofStream(given: StreamPolicyOptions, random: Random | undefined): Waits {
  const policy = optionsObject('policy', given, ['maxAttempts', 'backoff'])
  const schedule = resolveBackoff('policy.backoff', policy.backoff, random)
  return {
    attempts: numberOption('policy.maxAttempts', policy.maxAttempts, {
      integer: true,
      min: 1,
      infinite: true,
      default: 5,
    }),
    waitAfter: (attempt) =>
      random === undefined && schedule.range !== undefined ? schedule.range(attempt) : exactly(schedule.delay(attempt)),
  }
}

function ofWork(given: RetryPolicyOptions, random: Random | undefined): Waits {
  const policy = mergeRetryPolicies(getDefaultRetryOptions(), checkRetryPolicy('policy', given))
  return {
    attempts: policy.attempts,
    waitAfter: (attempt) =>
      random === undefined ? backoffRange(attempt, policy) : exactly(backoff(attempt, policy, random)),
  }
}

function exactly(ms: Ms): DelayRange {
  return { minMs: ms, maxMs: ms }
}
