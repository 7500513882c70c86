import { doublingDelay } from '../../core/retry/backoff.js'
import { getDefaultRetryOptions } from '../../core/retry/retry-defaults.js'
import type { At, Ms } from '../../core/time/time.js'
import { isExpired } from '../../ports/envelope.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Outcome } from '../settle/outcome.js'
import { isOverCrashLimit } from './crash-limit.js'

/** A type that this process does not know is tried elsewhere first: after this long, doubling. */
const UNKNOWN_TYPE_MS = 5_000
const UNKNOWN_TYPE_LONGEST_MS = 300_000
/** After so many deliveries, no process is expected to know the type. */
const UNKNOWN_TYPE_DELIVERIES = 12

/** Where a delivery goes: on to its handler, back to the queue, or straight to its end without a run. */
export type Route =
  | { readonly kind: 'run' }
  | { readonly kind: 'back'; readonly afterMs: Ms }
  | { readonly kind: 'end'; readonly outcome: Outcome }

const RUN: Route = Object.freeze({ kind: 'run' })

/**
 * What this process can do with a type. `unknown` items may be anywhere on a plain queue, and go round until too many processes
 * have returned them; native backends hand out an unknown type only so that it is ended, and otherwise leave it where it is.
 */
export type Known = 'known' | 'unknown' | 'not asked for'

/** The part of routing that depends on the item only. */
export function route(item: ClaimedItem, known: Known, now: At): Route {
  const { envelope } = item
  if (item.cancelReason !== undefined) {
    return { kind: 'end', outcome: { kind: 'cancelled', why: item.cancelReason, hasRun: false } }
  }
  if (isExpired(envelope, now)) return { kind: 'end', outcome: { kind: 'expired' } }
  const attempts = envelope.retry?.attempts ?? getDefaultRetryOptions().attempts
  if (known === 'not asked for') return { kind: 'back', afterMs: UNKNOWN_TYPE_MS }
  if (known === 'unknown') {
    // By attempts, because an envelope may come from elsewhere with none left; and by deliveries, which count returns.
    if (envelope.attempt >= attempts || item.deliveries >= Math.max(attempts, UNKNOWN_TYPE_DELIVERIES)) {
      return { kind: 'end', outcome: { kind: 'unroutable', error: `unknown work type: ${envelope.type}` } }
    }
    const delays = { baseMs: UNKNOWN_TYPE_MS, maxMs: UNKNOWN_TYPE_LONGEST_MS }
    return { kind: 'back', afterMs: doublingDelay(Math.max(0, item.deliveries - 1), delays) }
  }
  if (isOverCrashLimit(item, attempts)) return { kind: 'end', outcome: { kind: 'crashed', crashes: item.crashes } }
  return RUN
}
