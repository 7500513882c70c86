import Database from 'better-sqlite3'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { play } from '../ledger-player.js'
import { step } from '../ledger-steps.js'
import { stories } from '../stories.js'
import { ledgerOn, temporaryFile } from './open-file.js'

/** Forgets all data: cheaper than another file with its tables. */
function clear(file: string): void {
  const db = new Database(file)
  const tables = db.prepare("select name from sqlite_schema where type = 'table' and name like 'story!_%' escape '!'")
  for (const name of tables.pluck().all() as string[]) db.exec(`delete from ${name}`)
  db.close()
}

describe('the SQLite ledger played against its model', { timeout: 600_000 }, () => {
  it('gives the same answers and holds the same records, step by step', async () => {
    const file = temporaryFile()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        clear(file)
        let now = () => 0
        const backend = sqliteBackend({ file, prefix: 'story_', now: () => now() })
        const open = (time: () => number) => {
          now = time
          return ledgerOn(backend)
        }
        try {
          await play({ open }, steps)
        } finally {
          await backend.close()
        }
      }),
      { numRuns: stories(300) },
    )
  })
})
