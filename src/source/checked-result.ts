import { isResult, nak, type Result } from '../core/result.js'
import { show } from '../core/show.js'
import { InvalidResultError } from '../core/stream-errors.js'

/** Whatever a handler returned, as a result: what is none is never read as an ack. */
export function checked(result: unknown): Result {
  return isResult(result) ? result : nak(new InvalidResultError(show(result)))
}
