import { classify } from '../core/classify.js'
import { systemClock } from '../core/clock.js'
import { nak, nakAfter, type Result, reject, term } from '../core/result.js'
import type { At } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'

/**
 * What a thrown error means for its message: poison is terminated, what is invalid for its state is rejected, and
 * everything else is delivered again, not before the failure itself asked to be left alone.
 */
export function resultOfError(error: unknown, now: () => At = systemClock.now): Result {
  const at = now()
  const verdict = classify(error, { now: at })
  switch (verdict.class) {
    case 'poison':
      return term(error)
    case 'invalidForState':
      return reject(error)
    case 'retryable':
    case 'unclassified':
    case 'drop': {
      const floorMs = verdict.deferTo === undefined ? (verdict.floorMs ?? 0) : Math.max(0, verdict.deferTo - at)
      return floorMs > 0 ? nakAfter(floorMs, error) : nak(error)
    }
    default:
      return unreachable(verdict.class)
  }
}
