import { afterAll, beforeAll } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { onPostgres, onSqlite } from '../grounds.js'
import { describeGuildClient } from './client-suite.js'

let server: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  // The suite is about behaviour; durability is not its question.
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

describeGuildClient(onSqlite)
describeGuildClient(onPostgres(() => server.url))
