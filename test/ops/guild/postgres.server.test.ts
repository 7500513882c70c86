import { afterAll, beforeAll } from 'vitest'
import { onPostgres } from '../../guild/grounds.js'
import { startPostgres } from '../../servers/index.js'
import { describeGuildActs } from './act-suite.js'
import { describeGuildReads } from './guild-suite.js'

let server: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

describeGuildReads(onPostgres(() => server.url))
describeGuildActs(onPostgres(() => server.url))
