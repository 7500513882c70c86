import type { Clock, Random } from '../../../core/time/clock.js'

/** Six bytes, of which the first bit is left free at the beginning of a millisecond, so that many more ids fit into it. */
const FRESH_BITS = 47
const TAIL_DIGITS = 12
const TAIL_END = 2 ** 48
/** Milliseconds have eight digits until 2059; fewer digits would sort wrongly among them. */
const TIME_DIGITS = 8

/**
 * Makes ids of writs: `w-<time>-<chance>`. They sort in the order of their making: within a millisecond, and after the clock
 * was set back, the last part counts on.
 */
export function writIds(clock: Pick<Clock, 'now'>, random: Random): () => string {
  let ms = -1
  let tail = 0
  return () => {
    const now = Math.floor(clock.now())
    if (now > ms) {
      ms = now
      tail = Math.floor(random() * 2 ** 24) * 2 ** (FRESH_BITS - 24) + Math.floor(random() * 2 ** (FRESH_BITS - 24))
    } else {
      tail += 1
      if (tail >= TAIL_END) {
        ms += 1
        tail = 0
      }
    }
    return `w-${ms.toString(36).padStart(TIME_DIGITS, '0')}-${tail.toString(16).padStart(TAIL_DIGITS, '0')}`
  }
}

/** The short form of an id, for people: `w-m5x1k2ab` of `w-m5x1k2ab-0123456789ab`. */
export function shortWritId(id: string): string {
  return id.split('-').slice(0, 2).join('-')
}
