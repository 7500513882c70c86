import { Cluster, Redis } from 'ioredis'
import { redisBackend } from 'millrace/redis'
import { RedisStreamInlet } from 'millrace/source/redis'

// Clients of the driver are taken as they are, without a cast. Nothing is connected to: this file is only compiled.
export const backends = () => [
  redisBackend({ client: new Redis() }),
  redisBackend({ client: new Cluster(['node:6379']) }),
]

export const inlets = () => [
  new RedisStreamInlet({ client: new Redis(), stream: 'orders', group: 'shipping' }),
  new RedisStreamInlet({ client: new Cluster(['node:6379']), stream: 'orders', group: 'shipping' }),
]
