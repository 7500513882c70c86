// A clock whose wall time is set forward and back while it runs, as that of a machine may be.
import { systemClock } from 'millrace/source'
import { machineNow } from './machine-time.mjs'

/**
 * Its monotonic time is the machine's and does not step.
 * @param {number} offsetMs
 */
export function steppingClock(offsetMs) {
  let offset = offsetMs
  return {
    /** @type {import('millrace').Clock} */
    clock: { ...systemClock, now: () => Date.now() + offset, monotonic: machineNow },
    /** @param {number} to */
    setOffset(to) {
      offset = to
    },
  }
}
