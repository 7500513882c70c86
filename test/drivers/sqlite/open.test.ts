import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { openSqlite, overSqlite } from '../../../src/drivers/sqlite/open.js'
import { temporaryFile } from './temporary.js'

const hasOwnSqlite = isBuiltin('node:sqlite')
const how = { busyMs: 5, synchronous: 'normal' } as const

describe('a SQLite file', () => {
  it('is opened in WAL mode, with the durability that was asked for', () => {
    const file = temporaryFile()
    const normal = openSqlite(file, how)
    const full = openSqlite(file, { ...how, synchronous: 'full' })

    expect([normal.pragma('journal_mode'), normal.pragma('synchronous')]).toEqual(['wal', 1])
    expect(full.pragma('synchronous')).toBe(2)
    normal.close()
    full.close()
  })

  it('gives rows as arrays, with any text in them', () => {
    const db = openSqlite(temporaryFile(), how)
    db.exec('create table t (a text, b real, c blob) strict')
    const row = ["it's \0 {odd} 漢字 🜚", 1.5, new Uint8Array([1, 0, 2])] as const

    expect(db.prepare('insert into t values (?, ?, ?)').run(...row)).toBe(1)
    const [text, number, blob] = db.prepare('select * from t').get() ?? []

    expect([text, number]).toEqual([row[0], row[1]])
    expect(new Uint8Array(blob as Uint8Array)).toEqual(row[2])
    expect(db.prepare('select a from t where a = ?').all(row[0])).toEqual([[row[0]]])
    db.close()
  })

  it('is made with the directories that lead to it, for its owner only', () => {
    const file = join(dirname(temporaryFile()), 'data', 'jobs', 'work.db')

    openSqlite(file, how).close()

    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('that cannot be opened is named, with the reason', () => {
    const file = temporaryFile()
    const noDatabase = join(dirname(file), 'text.db')
    const belowFile = join(noDatabase, 'data.db')
    const directory = join(dirname(file), 'directory')
    writeFileSync(noDatabase, 'this is not a database, but it is long enough to be looked at as one'.repeat(20))
    mkdirSync(directory)

    for (const bad of [belowFile, noDatabase, directory])
      expect(() => openSqlite(bad, how)).toThrow(expect.objectContaining({ code: 'SQLITE_OPEN', facts: { file: bad } }))
  })

  it.skipIf(hasOwnSqlite)('says what to install where no library opens it', () => {
    expect(() => openSqlite(temporaryFile(), { ...how, driver: 'node:sqlite' })).toThrow(
      expect.objectContaining({
        code: 'DRIVER_MISSING',
        message: expect.stringContaining('npm install better-sqlite3'),
      }),
    )
  })
})

describe("a user's own connection", () => {
  it('is known for what it is', () => {
    const db = new Database(temporaryFile())

    expect(overSqlite(db)?.driver).toBe('better-sqlite3')
    for (const other of [undefined, null, 'db', {}, { prepare() {} }]) expect(overSqlite(other)).toBe(undefined)
    db.close()
  })
})
