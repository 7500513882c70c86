/** Private Redis, PostgreSQL and NATS servers for tests, chaos and benchmarks. Never the ones on the standard ports. */
export { startNats } from './nats.js'
export { startPostgres } from './postgres.js'
export { startRedis } from './redis.js'
export { startRedisCluster } from './redis-cluster.js'
export { startRedisBehindSentinel } from './redis-sentinel.js'
