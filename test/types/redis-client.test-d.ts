import { Cluster, Redis } from 'ioredis'
import { redisBackend } from 'millrace/redis'

// Clients of the driver are taken as they are, without a cast. Nothing is connected to: this file is only compiled.
export const backends = () => [
  redisBackend({ client: new Redis() }),
  redisBackend({ client: new Cluster(['node:6379']) }),
]
