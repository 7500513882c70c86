import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { redisBackend } from '../../src/backends/redis/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { isResting, Schemas } from '../backends/postgres/schemas.js'
import { watchedClient } from '../backends/redis/watched-client.js'
import { startRedis } from '../servers/index.js'
import { describeReads } from './reads-suite.js'

let schemas: Schemas
let redis: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  ;[schemas, redis] = await Promise.all([Schemas.start(), startRedis()])
})
afterAll(async () => {
  await Promise.all([schemas.stop(), redis.stop()])
})

describeReads('PostgreSQL', () => {
  const clock = new FakeClock({ resting: isResting })
  const backend = schemas.make({ clock })
  return { backend, clock, close: () => schemas.close(backend) }
})

describeReads('Redis', () => {
  const watched = watchedClient(redis.url)
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
})
