import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { systemClock } from '../../../src/core/clock.js'
import type { TracerStore } from '../tracer.js'
import { SqliteTracer } from './ledger.js'

/** A database file in a directory of its own. */
export async function sqliteStore(): Promise<TracerStore & { readonly file: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'))
  const file = join(dir, 'ledger.db')
  return {
    name: 'sqlite',
    file,
    open: async (now) =>
      new SqliteTracer({ file, clock: now === undefined ? systemClock : { ...systemClock, now }, random: Math.random }),
    async reset() {
      const db = new Database(file)
      db.exec('pragma journal_mode = wal')
      for (const table of ['item', 'item_group', 'gate', 'gate_member']) db.exec(`drop table if exists ${table}`)
      db.close()
    },
    close: async () => rmSync(dir, { recursive: true }),
  }
}
