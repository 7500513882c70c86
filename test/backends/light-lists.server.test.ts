import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { redisBackend } from '../../src/backends/redis/index.js'
import { startPostgres, startRedis } from '../servers/index.js'
import { describeLightLists } from './light-lists-suite.js'

let postgres: Awaited<ReturnType<typeof startPostgres>>
let redis: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([startPostgres({ settings: { fsync: 'off' } }), startRedis()])
})
afterAll(async () => {
  await Promise.all([postgres.stop(), redis.stop()])
})

const BLOCK_BYTES = 8192

describeLightLists('PostgreSQL', async () => {
  const full = postgresBackend({ connectionString: postgres.url })
  // One connection, so that all that is asked goes over it, and its statistics are those of the calls.
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 })
  const opened = [full]
  /** What was read of the texts that stand beside their rows, as the server counts it. */
  const toastBytes = async () => {
    await pool.query('select pg_stat_force_next_flush()')
    const { rows } = await pool.query(
      'select sum(coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0)) as blocks from pg_statio_user_tables',
    )
    return Number(rows[0]?.blocks) * BLOCK_BYTES
  }
  let received = () => 0
  pool.on('connect', (client) => {
    // The stream of a client is not in its types.
    const { stream } = (client as unknown as { connection: { stream: { bytesRead: number } } }).connection
    received = () => stream.bytesRead
  })
  return {
    full,
    again: async () => {
      const backend = postgresBackend({ pool })
      opened.push(backend)
      return {
        backend,
        async bytesOf(call) {
          const [toast, wire] = [await toastBytes(), received()]
          await call()
          const sent = received() - wire
          return sent + (await toastBytes()) - toast
        },
      }
    },
    close: async () => {
      for (const backend of opened) await backend.close()
      await pool.end()
    },
  }
})

describeLightLists('Redis', async () => {
  const full = redisBackend({ url: redis.url })
  const admin = new Redis(redis.url)
  const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await admin.info('stats'))?.[1])
  return {
    full,
    again: async () => ({
      backend: full,
      async bytesOf(call) {
        const before = await sent()
        await call()
        return (await sent()) - before
      },
    }),
    close: async () => {
      await full.close()
      admin.disconnect()
    },
  }
})
