/** The door of Redis Streams: an inlet for `millrace/source`. */

export type { RedisAddress, RedisClientLike } from '../../drivers/redis/index.js'
export { StreamFetchError } from '../inlets/broker/stream-fetch-error.js'
export type { StreamExplanation, StreamLetter, StreamLetters } from '../inlets/broker/stream-letters.js'
export { RedisStreamLetterError } from './redis-adapter.js'
export { type StreamFieldsOptions, streamFields } from './redis-fields.js'
export { type RedisEntry, redisEntry } from './redis-message.js'
export { RedisStreamInlet, type RedisStreamInletOptions } from './redis-stream-inlet.js'
export { RedisStreamOutlet, type RedisStreamOutletOptions } from './redis-stream-outlet.js'
