import { describe, expect, it } from 'vitest'
import { temporaryFile } from '../../drivers/sqlite/temporary.js'
import { startPostgres, startRedis } from '../../servers/index.js'
import { killedBulk } from './killed-bulk.js'

/** `npm run bench -- bulk-redrive` does the same with 100,000. */
const COUNT = 3_000

async function expectExact(address: string): Promise<void> {
  const { report, killedAt, redriven, openGroups, deadLeft } = await killedBulk(address, COUNT)
  expect(killedAt.length, 'two who acted were killed').toBe(2)
  expect(report).toMatchObject({ verb: 'redrive', total: COUNT, done: COUNT, passed: 0, state: 'done' })
  expect([...redriven]).toEqual([[1, COUNT]])
  expect([openGroups, deadLeft]).toEqual([COUNT, 0])
}

describe('a bulk redrive whose process is killed with -9, twice', () => {
  it('ends exactly, on SQLite', () => expectExact(`sqlite:${temporaryFile()}`))

  it('ends exactly, on Postgres', async () => {
    const server = await startPostgres({ settings: { fsync: 'off' } })
    try {
      await expectExact(server.url)
    } finally {
      await server.stop()
    }
  })

  it('ends exactly, on Redis', async () => {
    const server = await startRedis()
    try {
      await expectExact(server.url)
    } finally {
      await server.stop()
    }
  })
})
