import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { overBetterSqlite3 } from '../../../src/drivers/sqlite/better-sqlite3.js'
import { migrate, type SchemaPlan } from '../../../src/drivers/sqlite/schema.js'
import { temporaryFile } from './temporary.js'

const plan = (...sql: readonly string[]): SchemaPlan => ({
  component: 'it\'s "odd"',
  steps: sql.map((text, i) => ({ version: i + 1, minReader: 1, sql: text })),
})
const first = 'create table a (x integer) strict'
const second = 'alter table a add column y integer'

const open = () => overBetterSqlite3(new Database(temporaryFile()))

describe('a schema', () => {
  it('is made once, however often it is asked for', () => {
    const db = open()

    migrate(db, plan(first), true)
    migrate(db, plan(first), true)

    expect(db.prepare('select * from a').all()).toEqual([])
  })

  it('grows by the steps that are missing, and keeps what is there', () => {
    const db = open()
    migrate(db, plan(first), true)
    db.exec('insert into a (x) values (1)')

    migrate(db, plan(first, second), true)

    expect(db.prepare('select x, y from a').all()).toEqual([[1, null]])
  })

  it('of a newer version is used by older code that it still allows', () => {
    const db = open()
    migrate(db, plan(first, second), true)

    migrate(db, plan(first), true)

    expect(db.prepare('select version from millrace_schema').all()).toEqual([[2]])
  })

  it('of a newer version refuses code that is too old, and says so', () => {
    const db = open()
    const { component, steps } = plan(first, second)
    migrate(db, { component, steps: steps.map((step) => ({ ...step, minReader: step.version })) }, true)

    expect(() => migrate(db, plan(first), true)).toThrow(
      expect.objectContaining({ code: 'SCHEMA_TOO_NEW', facts: { component, version: 2, minReader: 2, own: 1 } }),
    )
  })

  it('is not touched where that is not allowed', () => {
    const db = open()

    expect(() => migrate(db, plan(first), false)).toThrow(expect.objectContaining({ code: 'SCHEMA_MISSING' }))
    expect(db.prepare('select name from sqlite_schema').all()).toEqual([])
    migrate(db, plan(first), true)
    migrate(db, plan(first), false)
  })

  it('is left as it was by a step that fails', () => {
    const db = open()
    migrate(db, plan(first), true)

    expect(() => migrate(db, plan(first, `${second}; create nonsense`), true)).toThrow(/nonsense/)

    expect(db.prepare('select version from millrace_schema').all()).toEqual([[1]])
    migrate(db, plan(first, second), true)
  })

  it('has a version for each component', () => {
    const db = open()
    migrate(db, plan(first), true)
    migrate(db, { component: 'b', steps: [{ version: 1, minReader: 1, sql: 'create table b (x integer)' }] }, true)

    expect(db.prepare('select count(*) from millrace_schema').all()).toEqual([[2]])
  })
})
