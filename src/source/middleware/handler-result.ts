import { classify } from '../../core/failure/classify.js'
import { isResult, nak, nakAfter, type Result, reject, term } from '../../core/stream/result.js'
import { InvalidResultError } from '../../core/stream/stream-errors.js'
import { describeValue } from '../../core/text/describe-value.js'
import { systemClock } from '../../core/time/clock.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'

/**
 * What a thrown error means for its message: poison is terminated, what is invalid for its state is rejected, and
 * everything else is delivered again, not before the time that the failure itself asked for.
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

/** Whatever a handler returned, as a result: what is none is never read as an ack. */
export function checked(result: unknown): Result {
  return isResult(result) ? result : nak(new InvalidResultError(describeValue(result)))
}
