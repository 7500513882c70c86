import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { startPostgres } from '../servers/index.js'
import type { PrivateServer } from '../servers/private-server.js'
import { endAll } from './service.js'
import { playService } from './service-story.js'

let server: PrivateServer

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterEach(endAll)
afterAll(async () => {
  await server?.stop()
})

it('the service keeps its promises on PostgreSQL', async () => {
  await playService(server.url, async () => {
    const backend = postgresBackend({ connectionString: server.url, schema: 'work' })
    const db = new pg.Client({ connectionString: server.url })
    await db.connect()
    onTestFinished(() => db.end())
    onTestFinished(() => backend.close())
    const ids = (table: string) =>
      db.query<{ id: string }>(`select ${table === 'orders' ? 'id' : 'key'} as id from ${table}`)
    return { backend, ids: async (table) => (await ids(table)).rows.map(({ id }) => id) }
  })
  expect.hasAssertions()
})
