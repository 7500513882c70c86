import { getDefaultRetryOptions } from '../core/retry-defaults.js'
import type { At, Ms } from '../core/time.js'
import { isExpired } from '../ports/envelope.js'
import type { Claimed } from '../ports/item.js'
import { DEPENDENCY_TYPE } from './dependency.js'
import type { Outcome } from './outcome.js'

/** A type nobody here knows is tried elsewhere first: after this long, doubling. */
const UNKNOWN_TYPE_MS = 5_000
const UNKNOWN_TYPE_LONGEST_MS = 300_000
/** After so many deliveries a type counts as known to nobody. */
const UNKNOWN_TYPE_DELIVERIES = 12
/** Crashes below this are taken for deploys and kills, not for the item's own doing. */
const CRASH_FLOOR = 3

/** The next crash would end it. */
export function isLastChance({ crashes }: Claimed): boolean {
  return crashes >= CRASH_FLOOR - 1
}

/** Where a delivery goes: on to its handler, back to the queue, or straight to its end without a run. */
export type Route =
  | { readonly kind: 'run' }
  | { readonly kind: 'back'; readonly afterMs: Ms }
  | { readonly kind: 'end'; readonly outcome: Outcome }

const RUN: Route = Object.freeze({ kind: 'run' })

/**
 * What this process can do with a type. `unknown` items may be anywhere on a plain queue, and go round until too many processes
 * have given them back; native backends hand out an unknown type only to be ended, and otherwise leave it in its place.
 */
export type Known = 'known' | 'unknown' | 'not asked for'

/** The part of routing that depends on the item alone. */
export function route(item: Claimed, known: Known, now: At): Route {
  const { envelope } = item
  if (item.cancelled !== undefined) {
    return { kind: 'end', outcome: { kind: 'cancelled', why: item.cancelled, hasRun: false } }
  }
  if (isExpired(envelope, now)) return { kind: 'end', outcome: { kind: 'expired' } }
  const attempts = envelope.retry?.attempts ?? getDefaultRetryOptions().attempts
  if (known === 'not asked for') return { kind: 'back', afterMs: UNKNOWN_TYPE_MS }
  if (known === 'unknown') {
    // By attempts, as an envelope may come from elsewhere with its tries used up; and by deliveries, which put-backs count.
    if (envelope.attempt >= attempts || item.deliveries >= Math.max(attempts, UNKNOWN_TYPE_DELIVERIES)) {
      return { kind: 'end', outcome: { kind: 'unroutable', error: `unknown work type: ${envelope.type}` } }
    }
    const afterMs = Math.min(UNKNOWN_TYPE_LONGEST_MS, UNKNOWN_TYPE_MS * 2 ** Math.max(0, item.deliveries - 1))
    return { kind: 'back', afterMs }
  }
  // A gate runs nobody's code: it was only near when others brought their process down.
  const isSuspect = envelope.type !== DEPENDENCY_TYPE
  if (item.crashes >= CRASH_FLOOR && isSuspect && envelope.attempt + item.crashes > attempts) {
    return { kind: 'end', outcome: { kind: 'crashed', crashes: item.crashes } }
  }
  return RUN
}
