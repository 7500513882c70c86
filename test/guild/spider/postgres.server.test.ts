import { afterAll, beforeAll } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { onPostgres } from '../grounds.js'
import { describeEndings } from './endings.js'
import { describeRefusals } from './refusals.js'
import { describeSpider } from './scenarios.js'

let server: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  // The suite is about behaviour; durability is not its question.
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

describeSpider(onPostgres(() => server.url))
describeEndings(onPostgres(() => server.url))
describeRefusals(onPostgres(() => server.url))
