import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'

const FIRST_WAIT_MS: Ms = 100
const TRIES = 6

/**
 * Calls again when a call rejects: its outcome is unknown then, and guards make a repetition harmless. Gives up after some
 * seconds, with the last error: whoever began it goes on later.
 */
export async function patiently<T>(
  clock: Clock,
  call: () => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call()
    } catch (error) {
      if (tries >= TRIES || isFinal(error)) throw error
      await clock.sleep(FIRST_WAIT_MS * 2 ** (tries - 1))
    }
  }
}
