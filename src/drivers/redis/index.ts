export { REDIS_ADDRESSES, redisAddressOption } from './address-option.js'
export type { RedisAddress, RedisClientLike } from './client.js'
export { RedisConnection } from './connection.js'
export {
  RedisClosedError,
  RedisDisconnectedError,
  RedisFullError,
  RedisTimeoutError,
  RedisUnreachableError,
} from './errors.js'
export { type Script, scriptFrom } from './script.js'
export { RedisSubscriptions } from './subscriptions.js'
