import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, expect, it, onTestFinished } from 'vitest'
import { sqliteBackend } from '../../src/backends/sqlite/index.js'
import { endAll } from './service.js'
import { playService } from './service-story.js'

afterEach(endAll)

it('the service keeps its promises on SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-service-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'shop.db')
  await playService(file, async () => {
    const backend = sqliteBackend({ file })
    const db = new Database(file, { readonly: true })
    onTestFinished(() => backend.close())
    onTestFinished(() => void db.close())
    const ids = (table: string) =>
      db.prepare(`select ${table === 'orders' ? 'id' : 'key'} as id from ${table}`).all() as { readonly id: string }[]
    return { backend, ids: async (table) => ids(table).map(({ id }) => id) }
  })
  expect.hasAssertions()
})
