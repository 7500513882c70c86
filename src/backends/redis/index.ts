/** Work on Redis, for fleets that want low latency: standalone, Sentinel or Cluster. */
export {
  type RedisAddress,
  type RedisClientLike,
  RedisClosedError,
  RedisDisconnectedError,
  RedisFullError,
  RedisTimeoutError,
  RedisUnreachableError,
} from '../../drivers/redis/index.js'
export { WrongModeError } from '../../ports/mode.js'
export { type RedisBackend, redisBackend } from './backend.js'
export { EvictionWarning } from './eviction.js'
export type { RedisBackendOptions } from './options.js'
export type { RedisPubSub } from './ports/pubsub.js'
export type { RedisQueue } from './ports/queue.js'
export type { RedisStore } from './ports/store.js'
