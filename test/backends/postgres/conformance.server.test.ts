import { afterAll, beforeAll, describe, it } from 'vitest'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import { describeBackend } from '../../../src/testing/conformance/describe-backend.js'
import { isResting, Schemas } from './schemas.js'

let schemas: Schemas

beforeAll(async () => {
  schemas = await Schemas.start()
})
afterAll(() => schemas?.stop())

describeBackend({
  name: 'postgres',
  test: { describe, it },
  open: (clock) => schemas.open({ clock }),
  close: (backend) => schemas.close(backend as PostgresBackend),
  resting: isResting,
  // Those clauses stop the adapter over plain ports between any two of its calls, which is the same over any ports; they run
  // over those in memory. Here they would take a minute and more.
  plain: { without: ['counts once', 'crash points'] },
  quietMs: 20,
})
