import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SmallDisk } from './small-disk.js'

/** A database on a separate disk, or on the usual one where nothing may be mounted. */
function openDatabase() {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
  const disk = SmallDisk.open(join(dir, 'disk'))
  const file = join(dir, disk === undefined ? '' : 'disk', 'some.db')
  const db = new Database(file)
  onTestFinished(() => {
    db.close()
    disk?.close()
    rmSync(dir, { recursive: true })
  })
  db.pragma('journal_mode = wal')
  db.exec('create table t (text)')
  const write = () => db.prepare('insert into t values (?)').run('x'.repeat(5_000))
  return { disk, file, write }
}

describe('a disk that can be full', () => {
  it('refuses to write while it is full, and writes again when there is room', () => {
    const { disk, file, write } = openDatabase()
    for (let i = 0; i < 100; i += 1) write()
    disk?.fill(file)
    // Where this user may not mount, there is no such disk, and no fault of this kind.
    if (disk !== undefined) expect(write).toThrow(expect.objectContaining({ code: 'SQLITE_FULL' }))
    disk?.empty()

    expect(write().changes).toBe(1)
    expect(disk !== undefined).toBe(SmallDisk.isPossible())
  })
})
