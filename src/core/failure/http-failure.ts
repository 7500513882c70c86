import { peek, peekArray, peekString } from '../text/safe-read.js'
import type { At, Ms } from '../time/time.js'
import type { Verdict } from './failure.js'

/** No server is believed that asks for more: a day later it is asked again. */
export const MAX_RETRY_AFTER_MS: Ms = 86_400_000

/** Statuses that the same request will meet again: its form is at fault. */
const POISON: ReadonlySet<number> = new Set([400, 405, 406, 410, 411, 413, 414, 415, 422, 431])
/** Statuses that speak of the state that the request met. */
const INVALID_FOR_STATE: ReadonlySet<number> = new Set([409, 412])
// 401, 403 and 404 are retryable on purpose: an expired token or a late replica must not dead-letter a whole queue.

/** AWS answers 400 to these, though they pass: a throttle lifts, a token is renewed. */
const PASSING_AWS_NAMES: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'LimitExceededException',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'RequestTimeout',
  'RequestTimeoutException',
  'SlowDown',
  'ThrottledException',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
  'TransactionInProgressException',
])

/** The verdict of an HTTP status carried by this one error, `undefined` when it carries none. Never throws. */
export function httpVerdict(error: unknown, now: At): Verdict | undefined {
  const status = failureStatus(error)
  if (status === undefined) return undefined
  const rule = `http-${status}`
  const retryable = (named: string): Verdict => {
    const floorMs = retryAfterOf(error, now)
    return floorMs === undefined ? { class: 'retryable', rule: named } : { class: 'retryable', rule: named, floorMs }
  }
  const lasting = POISON.has(status) ? 'poison' : INVALID_FOR_STATE.has(status) ? 'invalidForState' : undefined
  if (lasting === undefined) return retryable(rule)
  return isPassingAwsError(error) ? retryable('aws-retryable') : { class: lasting, rule }
}

/** `Retry-After` as a wait: seconds, or a date. `undefined` when it is neither; never negative, at most a day. */
export function parseRetryAfter(value: unknown, now: At): Ms | undefined {
  const ms = retryAfterMs(typeof value === 'string' ? value.trim().slice(0, 100) : value, now)
  return ms === undefined || Number.isNaN(ms) ? undefined : Math.min(Math.max(Math.ceil(ms), 0), MAX_RETRY_AFTER_MS)
}

function retryAfterMs(value: unknown, now: At): Ms | undefined {
  if (typeof value === 'number') return value * 1000
  if (typeof value !== 'string') return undefined
  if (/^[+-]?\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  // Only what starts like an HTTP or ISO date: `Date.parse` makes a date of nearly anything ("foo 5" is in May 2001).
  if (!/^(?:mon|tue|wed|thu|fri|sat|sun)|^\d{4}-\d\d-\d\d/i.test(value)) return undefined
  // The oldest form of an HTTP date names no zone and means UTC; `Date.parse` would take it as local time.
  const isZoneless = /^[a-z]{3} [a-z]{3} +\d+ [\d:]+ \d{4}$/i.test(value)
  return Date.parse(isZoneless ? `${value} GMT` : value) - now
}

function failureStatus(error: unknown): number | undefined {
  const candidates = [
    peek(error, 'status'),
    peek(error, 'statusCode'),
    peek(peek(error, 'response'), 'status'),
    peek(peek(error, 'response'), 'statusCode'),
    peek(peek(error, '$metadata'), 'httpStatusCode'),
  ]
  for (const candidate of candidates) {
    // Some clients keep it as text. Other things are called status too ("error", 0, 200): only failures count.
    const status = typeof candidate === 'string' && /^\d{3}$/.test(candidate) ? Number(candidate) : candidate
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599) return status
  }
  return undefined
}

function isPassingAwsError(error: unknown): boolean {
  if (peek(error, '$metadata') === undefined) return false
  const retryable = peek(error, '$retryable')
  return (typeof retryable === 'object' && retryable !== null) || PASSING_AWS_NAMES.has(peekString(error, 'name') ?? '')
}

function retryAfterOf(error: unknown, now: At): Ms | undefined {
  for (const holder of [error, peek(error, 'response'), peek(error, '$response')]) {
    const value = headerOf(peek(holder, 'headers'), 'retry-after')
    const floorMs = parseRetryAfter(peekArray(value, 1)?.[0] ?? value, now)
    if (floorMs !== undefined) return floorMs
  }
  return undefined
}

/** A header from a `Headers` object, a Map, or a plain object in any letter case. */
function headerOf(headers: unknown, name: string): unknown {
  if (typeof headers !== 'object' || headers === null) return undefined
  try {
    const get = peek(headers, 'get')
    if (typeof get === 'function') {
      const found: unknown = get.call(headers, name) ?? get.call(headers, 'Retry-After')
      if (found !== undefined && found !== null) return found
    }
    for (const key of Object.keys(headers).slice(0, 500)) {
      if (key.length === name.length && key.toLowerCase() === name) return peek(headers, key)
    }
  } catch {
    // Headers that cannot be read say nothing.
  }
  return undefined
}
