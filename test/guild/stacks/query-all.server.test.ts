import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStacks, postgresStacks, sqliteStacks } from 'millrace/guild/stacks'
import { describe, it } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { checkQueries } from './query-property.js'

const SETS = Number(process.env['MILLRACE_QUERY_SETS'] ?? 50)

describe('the query language on memory, SQLite and PostgreSQL', () => {
  it('answers a thousand random queries alike, and as a plain filter over a list does', async () => {
    // Nothing here is about surviving a power cut.
    const server = await startPostgres({ settings: { fsync: 'off' } })
    const folder = mkdtempSync(join(tmpdir(), 'millrace-queries-'))
    try {
      const backends = [
        memoryStacks(),
        sqliteStacks({ file: join(folder, 'q.sqlite') }),
        postgresStacks({ connectionString: server.url }),
      ]
      await checkQueries(backends, { sets: SETS, queries: 20 })
    } finally {
      await server.stop()
      rmSync(folder, { recursive: true })
    }
  })
})
