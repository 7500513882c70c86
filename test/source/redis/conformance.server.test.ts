import { Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { RedisStreamInlet, streamFields } from '../../../src/source/redis/index.js'
import { describeInlet } from '../../../src/testing/inlet-conformance.js'
import { startRedis } from '../../servers/index.js'
import { STANDINGS } from '../brokers/standings.js'

const server = await startRedis()
const producer = new Redis(server.url)
afterAll(async () => {
  producer.disconnect()
  await server.stop()
})

let opened = 0

describeInlet({
  ...STANDINGS.redis,
  // Most of a clause is waiting, and each has a stream of its own: several wait together.
  test: { describe, it: it.concurrent },
  // Leases and delays live by the server's time.
  realTime: true,
  // A step of a wait is a quiet moment and a pause: together they must stay well within a lease.
  quietMs: 5,
  open: ({ leaseMs }) => {
    opened += 1
    const stream = `clause ${opened}`
    return {
      inlet: new RedisStreamInlet({ url: server.url, stream, group: 'suite', leaseMs, idlePollMs: 200 }),
      config: { topics: [stream] },
      publish: async (...values) => {
        for (const value of values) await producer.xadd(stream, '*', ...streamFields(value))
      },
    }
  },
})
