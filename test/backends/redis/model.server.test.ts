import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { type RedisBackend, redisBackend } from '../../../src/backends/redis/index.js'
import { ownedBy } from '../../../src/ports/find-ledger.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { startRedis } from '../../servers/index.js'
import { play } from '../ledger-player.js'
import { step } from '../ledger-steps.js'
import { stories } from '../stories.js'
import { wrongIn } from './true-lists.js'
import { type WatchedClient, watchedClient } from './watched-client.js'

const server = await startRedis()
const admin = new Redis(server.url)
afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

/** The ledger, whose commits wait until what they published has arrived: the player compares notifications right after. */
function heardLedger(backend: RedisBackend, watched: WatchedClient): Ledger {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error('the Redis backend has a native ledger')
  const ledger = owned.open({ prefix: 'work:' })
  return {
    ...ledger,
    commit: async (batch) => {
      const results = await ledger.commit(batch)
      while (!watched.resting()) await nextTurn()
      return results
    },
  }
}

// A thousand stories on a real server take their time on a busy machine, and a failing one is shrunk for as long as it takes.
describe('the Redis ledger played against its model', { timeout: 600_000 }, () => {
  it('gives the same answers and holds the same records, step by step', () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12, size: 'max' }), async (steps) => {
        await server.flush()
        const watched = watchedClient(server.url)
        let backend: RedisBackend | undefined
        try {
          const open = (now: () => number) => {
            backend = redisBackend({ client: watched.client, prefix: 'model', now })
            return heardLedger(backend, watched)
          }
          await play({ open }, steps)
          expect(await wrongIn(admin, 'model')).toEqual([])
        } finally {
          await backend?.close()
          watched.close()
        }
      }),
      { numRuns: stories(300) },
    ))
})
