import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { temporaryFile } from '../../drivers/sqlite/temporary.js'
import type { RealGround } from './ground.js'

/** A file for each scenario. Everything that SQLite does is done within the turn that asked for it. */
export const ground: RealGround = {
  open() {
    const clock = new FakeClock()
    const backend = sqliteBackend({ file: temporaryFile(), clock })
    return { backend, clock, close: () => backend.close() }
  },
}
