import { clearInterval, setInterval } from 'node:timers'
import { systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { DEFAULT_TICK_MS, type TestTime, type TimeOptions, testTime } from './time.js'

/** How often it is noticed that the process gets its turns. */
const LOOK_EVERY_MS: Ms = 10
/** Standing still for this share of a tick may make a clause see too late what it came to see early. */
const SHARE_OF_A_TICK = 0.25
/** The longest ticks that a clause is given, in those of the suite. */
const SLOWEST = 16

/**
 * Plays a clause by the time of its suite. In real time, a clause that broke while the process stood still (a busy machine) has shown
 * nothing about the backend: it checked too late. It is played again with longer ticks.
 */
export async function inTestTime(options: TimeOptions, play: (time: TestTime) => Promise<void>): Promise<void> {
  if (options.realTime !== true) return play(testTime(options))
  for (let slowness = 1; ; slowness *= 2) {
    const tickMs = (options.tickMs ?? DEFAULT_TICK_MS) * slowness
    const turns = watchTurns()
    try {
      return await play(testTime({ ...options, tickMs }))
    } catch (error) {
      if (slowness >= SLOWEST || turns.longestGapMs() < tickMs * SHARE_OF_A_TICK) throw error
    } finally {
      turns.close()
    }
  }
}

function watchTurns() {
  let lastMs = systemClock.monotonic()
  let longestMs = 0
  const look = () => {
    const now = systemClock.monotonic()
    longestMs = Math.max(longestMs, now - lastMs - LOOK_EVERY_MS)
    lastMs = now
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  return {
    longestGapMs: (): Ms => {
      look()
      return longestMs
    },
    close: () => clearInterval(timer),
  }
}
