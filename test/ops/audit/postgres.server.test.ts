import { afterAll, beforeAll } from 'vitest'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { isResting, Schemas } from '../../backends/postgres/schemas.js'
import { startPostgres } from '../../servers/index.js'
import { describeAudit } from './audit-suite.js'

let server: Awaited<ReturnType<typeof startPostgres>>
let schemas: Schemas

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
  schemas = Schemas.at(server.url)
})
afterAll(() => server.stop())

describeAudit(
  'Postgres',
  () => {
    const clock = new FakeClock({ resting: isResting })
    const backend = schemas.make({ clock })
    return { backend, clock, close: () => schemas.close(backend) }
  },
  true,
)
