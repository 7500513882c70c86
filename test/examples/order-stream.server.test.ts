import { afterAll, beforeAll, describe, it } from 'vitest'
import { startPostgres, startRedis } from '../servers/index.js'
import { expectOrderStreamOn } from './order-stream.js'

let postgres: Awaited<ReturnType<typeof startPostgres>>
let redis: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([startPostgres({ settings: { fsync: 'off' } }), startRedis()])
})
afterAll(async () => {
  await Promise.all([postgres?.stop(), redis?.stop()])
})

describe('order-stream keeps lanes, runs each order once, and brings dead letters back', () => {
  it('on PostgreSQL', () => expectOrderStreamOn(postgres.url))
  it('on Redis', () => expectOrderStreamOn(redis.url))
})
