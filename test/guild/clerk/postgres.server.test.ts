import { afterAll, beforeAll } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { onPostgres } from '../grounds.js'
import { describeClerk } from './clerk-suite.js'

let server: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  // The suite is about behaviour; durability is not its question.
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

describeClerk(onPostgres(() => server.url))
