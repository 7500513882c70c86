import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'
import { redisBackend } from '../../../src/backends/redis/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { watchedClient } from '../../backends/redis/watched-client.js'
import type { RealGround } from './ground.js'

/** A namespace on the private server of the run, on a clock that stops during calls to the server. */
export const ground: RealGround = {
  open() {
    const watched = watchedClient(inject('redisUrl'))
    const clock = new FakeClock({ resting: watched.resting })
    const backend = redisBackend({ client: watched.client, prefix: randomUUID(), clock })
    return {
      backend,
      clock,
      close: async () => {
        await backend.close()
        watched.close()
      },
    }
  },
}
