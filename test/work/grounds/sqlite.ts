import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import type { Clock } from '../../../src/core/time/clock.js'
import { POLL_MS } from '../../../src/drivers/sqlite/change-watch.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { temporaryFile } from '../../drivers/sqlite/temporary.js'
import type { RealGround } from './ground.js'

/** A file for each scenario. Everything that SQLite does is done within the turn that asked for it. */
export const ground: RealGround = {
  open() {
    const clock = new FakeClock()
    const backend = sqliteBackend({ file: temporaryFile(), clock: withoutPolls(clock) })
    return { backend, clock, close: () => backend.close() }
  },
}

/**
 * No other process writes to the file of a scenario, so polls for the writes of others would find nothing; and where hours of fake
 * time pass, these polls were nearly all that happened. Their own tests are in test/drivers/sqlite.
 */
function withoutPolls(clock: FakeClock): Clock {
  const { now, monotonic, sleep } = clock
  return { now, monotonic, sleep, after: (ms, run) => clock.after(ms === POLL_MS ? Infinity : ms, run) }
}
