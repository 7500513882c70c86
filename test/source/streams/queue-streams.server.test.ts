import { afterAll, beforeAll } from 'vitest'
import { postgresBackend } from '../../../src/backends/postgres/index.js'
import { redisBackend } from '../../../src/backends/redis/index.js'
import { startPostgres, startRedis } from '../../servers/index.js'
import { describeQueueStreams } from './queue-streams-suite.js'

let postgres: Awaited<ReturnType<typeof startPostgres>>
let redis: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([startPostgres({ settings: { fsync: 'off' } }), startRedis()])
})
afterAll(async () => {
  await Promise.all([postgres?.stop(), redis?.stop()])
})

let opened = 0

describeQueueStreams('PostgreSQL', () => {
  opened += 1
  const schema = `streams_${opened}`
  return {
    connect: () => postgresBackend({ connectionString: postgres.url, schema }),
    close: async () => undefined,
  }
})

describeQueueStreams('Redis', () => {
  opened += 1
  const prefix = `streams ${opened}`
  return { connect: () => redisBackend({ url: redis.url, prefix }), close: async () => undefined }
})
