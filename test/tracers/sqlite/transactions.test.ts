import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/core/clock.js'
import { ask, contribute, enqueue, finish, item, times } from '../settlements.js'
import { SqliteTracer } from './ledger.js'
import { sqliteStore } from './store.js'

describe('a batch on SQLite', () => {
  it('is one write transaction, whatever is in it', async () => {
    const store = await sqliteStore()
    const begun: string[] = []
    const ledger = new SqliteTracer({
      file: store.file,
      clock: systemClock,
      random: Math.random,
      onStatement: (sql) => {
        if (/^(begin|commit|savepoint)/i.test(sql)) begun.push(sql)
      },
    })

    await ledger.commit(times(100, (i) => enqueue(item(`i${i}`))))
    const { items } = await ledger.claim(ask(100))
    await ledger.commit(items.map((claimed) => finish(claimed, [contribute(claimed.lease.id, '1')])))

    expect(begun).toEqual(times(3, () => ['BEGIN IMMEDIATE', 'COMMIT']).flat())
    await ledger.close()
    await store.close()
  })
})
