import type { Ms } from '../../core/time.js'

/** Longer than anybody waits, and still a whole number that both sides can count with. */
const FOREVER: Ms = 4_000_000_000_000_000

/** A duration as the server counts it: whole, and not negative. */
export function wholeMs(ms: Ms): Ms {
  return ms > 0 ? Math.min(FOREVER, Math.ceil(ms)) : 0
}
