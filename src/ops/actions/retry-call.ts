import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'

const FIRST_WAIT_MS: Ms = 100
const TRIES = 6

/**
 * Repeats a call that rejects: its outcome is unknown, and guards make a repetition harmless. Gives up after a few seconds with
 * the last error; the action can then be continued.
 */
export async function retryCall<T>(
  clock: Clock,
  call: () => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call()
    } catch (error) {
      if (tries >= TRIES || isFinal(error)) throw error
      await clock.sleep(doublingDelay(tries - 1, { baseMs: FIRST_WAIT_MS, maxMs: Number.POSITIVE_INFINITY }))
    }
  }
}
