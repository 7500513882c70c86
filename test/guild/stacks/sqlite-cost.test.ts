import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStacks, sqliteStacks } from 'millrace/guild/stacks'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SqliteDatabase, SqliteStatement } from '../../../src/drivers/sqlite/database.js'
import { openSqlite } from '../../../src/drivers/sqlite/open.js'
import { parseQuery } from '../../../src/guild/stacks/query/parse-query.js'
import { SqliteCatalogue } from '../../../src/guild/stacks/sqlite/catalogue.js'
import { querySql } from '../../../src/guild/stacks/sqlite/expression.js'
import { Session } from '../../../src/guild/stacks/sqlite/session.js'
import { SqliteTx } from '../../../src/guild/stacks/sqlite/tx.js'

// What keeps a small transaction cheap in a large store; `npm run bench -- stacks-cost` measures it.

const REF = { ownerId: 'clerk', book: 'writs' }
const OPTIONS = { busyMs: 0, synchronous: 'normal' } as const

async function newFile(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-cost-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'stacks.sqlite')
  const stacks = await openStacks({ backend: sqliteStacks({ file }) })
  await stacks.declare(REF.ownerId, { [REF.book]: { indexes: ['phase'] } })
  await stacks.close()
  return file
}

/** Writes down the first word of every statement that is run. */
function noting(db: SqliteDatabase, notes: string[]): SqliteDatabase {
  const noted = (statement: SqliteStatement, sql: string): SqliteStatement => {
    const ran = (): SqliteStatement => {
      notes.push(sql.trimStart().split(' ', 1)[0]!)
      return statement
    }
    return {
      run: (...values) => ran().run(...values),
      get: (...values) => ran().get(...values),
      all: (...values) => ran().all(...values),
    }
  }
  // The values of a statement are not known to the compiler here, as in a session.
  const prepare = ((sql: string) => noted(db.prepare(sql), sql)) as SqliteDatabase['prepare']
  return {
    driver: db.driver,
    prepare,
    exec: (sql) => db.exec(sql),
    pragma: (text) => db.pragma(text),
    close: () => db.close(),
    get inTransaction() {
      return db.inTransaction
    },
  }
}

describe('a transaction on SQLite', () => {
  it('does not read again what it has just locked', async () => {
    const notes: string[] = []
    const db = noting(openSqlite(await newFile(), OPTIONS), notes)
    onTestFinished(() => db.close())
    const [session, catalogue] = [new Session(db), new SqliteCatalogue('stacks')]
    catalogue.refresh(session, REF)
    db.exec('begin immediate')
    const tx = new SqliteTx({
      session,
      catalogue,
      prefix: 'stacks',
      release: () => undefined,
      appended: () => undefined,
    })
    const during = async <T>(run: () => Promise<T>) => {
      notes.length = 0
      return [await run(), ...notes]
    }

    const doc = { id: 'a', phase: 'new' }
    expect(await during(() => tx.lock(REF, 'a'))).toEqual([null, 'select'])
    expect(await during(() => tx.put(REF, doc, 'r1', null))).toEqual([null, 'insert'])
    const locked = await tx.lock(REF, 'a')
    expect(await during(() => tx.put(REF, { ...doc, phase: 'open' }, 'r2', locked))).toEqual([doc, 'update'])
    // A put without a lock still returns what was there.
    expect(await during(() => tx.put(REF, doc, 'r3'))).toEqual([{ ...doc, phase: 'open' }, 'select', 'update'])
    await tx.commit()
    expect(await tx.get(REF, 'a')).toEqual({ doc, rev: 'r3' })
  })

  it('finds with a limit that SQLite does not plan by, so that no call has it planned anew', () => {
    const { text, values } = querySql(parseQuery({ where: [['phase', '=', 'open']], limit: 3, offset: 2 }), new Map())
    expect(text).toMatch(/ limit \+\? offset \+\?$/)
    expect(values).toEqual(['open', 3, 2])
  })
})

describe('the memory of a connection', () => {
  it('is what was asked for', async () => {
    const file = await newFile()
    const cacheOf = (cacheKib?: number): unknown => {
      const db = openSqlite(file, { ...OPTIONS, ...(cacheKib === undefined ? {} : { cacheKib }) })
      const size = db.pragma('cache_size')
      db.close()
      return size
    }
    expect([cacheOf(8_192), cacheOf()]).toEqual([-8_192, -65_536])
  })

  it('is given in whole MiB, at least one', () => {
    for (const cacheMiB of [0, 0.5, Number.POSITIVE_INFINITY, 100_000])
      expect(() => sqliteStacks({ cacheMiB })).toThrow(/sqliteStacks\.cacheMiB/)
    expect(sqliteStacks({ cacheMiB: 64 }).name).toBe('sqlite')
  })
})
