import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { redisBackend } from '../../src/backends/redis/index.js'
import { sqliteBackend } from '../../src/backends/sqlite/index.js'
import { createWork, defineWork, memoryBackend } from '../../src/index.js'
import { openOps } from '../../src/ops/index.js'
import type { ItemQuery } from '../../src/ports/inspect.js'
import { temporaryFile } from '../drivers/sqlite/temporary.js'
import { startPostgres, startRedis } from '../servers/index.js'
import { ledgerOn } from './ledger-on.js'

const [postgres, redis] = await Promise.all([startPostgres({ settings: { fsync: 'off' } }), startRedis()])
afterAll(async () => {
  await Promise.all([postgres.stop(), redis.stop()])
})

let made = 0
const kinds = {
  memory: () => memoryBackend(),
  sqlite: () => sqliteBackend({ file: temporaryFile() }),
  postgres: () => postgresBackend({ connectionString: postgres.url, schema: `odd${made}` }),
  redis: () => redisBackend({ url: redis.url, prefix: `odd ${made}` }),
}

/** What some databases cannot hold, and what is longer than any name. */
const ODD = { 'U+0000': 'a\0b', 'half of a surrogate pair': 'a\ud800', 'five thousand characters': 'x'.repeat(5_000) }

describe.each(Object.entries(kinds))('a text that nothing has, on %s', (_kind, make) => {
  const open = () => {
    made += 1
    const backend = make()
    onTestFinished(() => backend.close())
    return backend
  }

  it.each(Object.entries(ODD))('matches nothing where a query names it: %s', async (_name, odd) => {
    const backend = open()
    // What half of a pair becomes in UTF-8: another text.
    const near = defineWork('a\ufffd', (_: null, ctx) => ctx.void())
    const work = createWork({ backend, work: [near], autoStart: false })
    await work.enqueue(near(null), { tags: ['a\ufffd'] }).accepted()
    const { inspect, ...ledger } = ledgerOn(backend)
    const queries: Partial<ItemQuery>[] = [
      { tag: odd },
      { type: odd },
      { queue: odd },
      { fingerprint: odd },
      { groupId: odd },
      { tag: odd, state: 'waiting' },
      { type: odd, tag: 'a\ufffd' },
    ]

    for (const query of queries) {
      expect(await inspect?.list({ ...query, limit: 10 })).toEqual({ items: [] })
      expect(await inspect?.count(query)).toBe(0)
    }
    expect(await inspect?.attempts(odd)).toEqual([])
    expect(await inspect?.input(odd)).toBeUndefined()
    expect(await inspect?.gate(odd)).toBeUndefined()
    expect(await ledger.read([odd])).toEqual([undefined])
    expect(await work.list({ tag: odd })).toEqual([])
    expect(await work.list({ type: odd })).toEqual([])
    expect(await work.states([odd])).toEqual([undefined])
    expect(await work.cancel(odd)).toMatchObject({ kind: 'unknown' })
    expect(await openOps(backend).item(odd)).toBeUndefined()
    await work.stop()
  })

  it('is no number to count with', async () => {
    const { store } = open()
    await store.set('counter', 'abc')

    const count = async (by: number) => store.increment?.('counter', by)
    await expect(count(1)).rejects.toMatchObject({ code: 'NOT_A_NUMBER' })
    await expect(count(Number.NaN)).rejects.toMatchObject({ code: 'NOT_A_NUMBER' })
    expect(await store.get('counter')).toBe('abc')
  })
})
