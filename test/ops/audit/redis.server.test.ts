import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { redisBackend } from '../../../src/backends/redis/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { watchedClient } from '../../backends/redis/watched-client.js'
import { startRedis } from '../../servers/index.js'
import { describeAudit } from './audit-suite.js'

let server: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describeAudit(
  'Redis',
  () => {
    const watched = watchedClient(server.url)
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
  true,
)
