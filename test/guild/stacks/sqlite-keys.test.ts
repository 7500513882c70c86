import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type BookQuery, openStacks, type Stacks, sqliteStacks } from 'millrace/guild/stacks'
import { expect, it, onTestFinished } from 'vitest'
import { overBetterSqlite3 } from '../../../src/drivers/sqlite/better-sqlite3.js'
import { migrate } from '../../../src/drivers/sqlite/schema.js'
import { fieldPath } from '../../../src/guild/stacks/documents/names.js'
import { parseQuery } from '../../../src/guild/stacks/query/parse-query.js'
import { indexColumns, querySql } from '../../../src/guild/stacks/sqlite/expression.js'
import { stacksSchema } from '../../../src/guild/stacks/sqlite/schema.js'
import { sqliteBook } from './sqlite-book.js'

// The keys of indexed fields lie in columns beside the document; the table keeps them in step for every writer.

interface Writ {
  readonly id: string
  readonly phase?: string | null
  readonly at?: { readonly day: number | boolean }
  readonly n: number
}

const REF = { ownerId: 'clerk', book: 'writs' }
const OPEN = { where: [['phase', '=', 'open']] } satisfies BookQuery
const FROM_DAY_2 = { where: [['at.day', '>=', 2]], orderBy: ['at.day', 'asc'] } satisfies BookQuery
/** A frame of the log is a page and its header. */
const FRAME_BYTES = 4_096 + 24

function newFile(): { readonly file: string; readonly db: Database.Database } {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-keys-'))
  const file = join(folder, 'stacks.sqlite')
  const db = new Database(file)
  onTestFinished(() => {
    db.close()
    rmSync(folder, { recursive: true })
  })
  return { file, db }
}

async function openWith(file: string, indexes: readonly (string | readonly string[])[]): Promise<Stacks> {
  const stacks = await openStacks({ backend: sqliteStacks({ file }) })
  onTestFinished(() => stacks.close())
  await stacks.declare('clerk', { writs: { indexes } })
  return stacks
}

const writsOf = (stacks: Stacks) => stacks.book<Writ>('clerk', 'writs')
const idsOf = async (stacks: Stacks, query: BookQuery) => (await writsOf(stacks).find(query)).map(({ id }) => id)

function planOf(db: Database.Database, query: BookQuery): string {
  const { table, columns } = sqliteBook(db, REF)
  const { text, values } = querySql(parseQuery(query), columns)
  const rows = db.prepare(`explain query plan select doc from ${table} ${text}`).all(...values)
  return rows.map((row) => (row as { detail: string }).detail).join('\n')
}

it('writes no entry of an index while the fields of the index stay as they are', async () => {
  const { file, db } = newFile()
  const stacks = await openWith(file, ['phase', 'at.day', ['at.day', 'phase']])
  await stacks.transaction(async () => {
    for (let n = 0; n < 500; n += 1)
      await writsOf(stacks).put({ id: `w-${n}`, phase: `p${n % 7}`, at: { day: n }, n: 0 })
  })
  const pagesOf = async (patch: Partial<Writ>): Promise<number> => {
    db.pragma('wal_checkpoint(truncate)')
    await writsOf(stacks).patch('w-250', patch)
    return Math.floor(statSync(`${file}-wal`).size / FRAME_BYTES)
  }
  // The page of the document, and nothing else.
  expect(await pagesOf({ n: 1 })).toBe(1)
  expect(await pagesOf({ phase: `p${250 % 7}`, at: { day: 250 }, n: 2 })).toBe(1)
  // The two indexes that have the field, at least.
  expect(await pagesOf({ phase: 'open' })).toBeGreaterThanOrEqual(3)
  expect(await idsOf(stacks, OPEN)).toEqual(['w-250'])
})

it('follows every change of an indexed field, its type and its absence', async () => {
  const { file, db } = newFile()
  const stacks = await openWith(file, ['phase', 'at.day'])
  const writs = writsOf(stacks)
  await writs.put({ id: 'a', phase: 'open', at: { day: 2 }, n: 0 })
  await writs.put({ id: 'b', phase: null, at: { day: true }, n: 0 })
  await writs.put({ id: 'c', n: 0 })
  expect(planOf(db, OPEN)).toMatch(/USING INDEX/)
  expect([await idsOf(stacks, OPEN), await idsOf(stacks, FROM_DAY_2)]).toEqual([['a'], ['a']])
  await writs.patch('a', { at: { day: true } })
  await writs.patch('b', { phase: 'open', at: { day: 3.5 } })
  await writs.put({ id: 'c', phase: 'open', at: { day: 2 }, n: 0 })
  expect([await idsOf(stacks, OPEN), await idsOf(stacks, FROM_DAY_2)]).toEqual([
    ['a', 'b', 'c'],
    ['c', 'b'],
  ])
  await writs.put({ id: 'b', n: 1 })
  await writs.delete('c')
  expect([await idsOf(stacks, OPEN), await idsOf(stacks, FROM_DAY_2)]).toEqual([['a'], []])
  expect(await idsOf(stacks, { where: [['phase', 'IS NULL']] })).toEqual(['b'])
})

it('keeps the keys of an index that another process has added since', async () => {
  const { file, db } = newFile()
  const older = await openWith(file, ['phase'])
  await writsOf(older).put({ id: 'a', phase: 'open', at: { day: 1 }, n: 0 })
  await writsOf(older).put({ id: 'b', phase: 'open', at: { day: 5 }, n: 0 })
  const newer = await openWith(file, ['phase', 'at.day'])
  expect(planOf(db, FROM_DAY_2)).toMatch(/USING INDEX/)
  expect(await idsOf(newer, FROM_DAY_2)).toEqual(['b'])
  // The first one does not know of the column, neither when it adds a document nor when it changes one.
  await writsOf(older).put({ id: 'c', phase: 'open', at: { day: 3 }, n: 0 })
  await writsOf(older).patch('a', { at: { day: 4 } })
  await writsOf(older).patch('b', { at: { day: 0 } })
  expect(await idsOf(newer, FROM_DAY_2)).toEqual(['c', 'a'])
  expect(await idsOf(older, FROM_DAY_2)).toEqual(['c', 'a'])
})

it('moves the indexes of version 1, which were over the document, to columns when the book is declared', async () => {
  const { file, db } = newFile()
  const connection = overBetterSqlite3(db)
  db.pragma('journal_mode = wal')
  const plan = stacksSchema('stacks')
  migrate(connection, { ...plan, steps: plan.steps.slice(0, 1) }, true)
  db.exec(`
    insert into stacks_book (id, owner, name) values (1, 'clerk', 'writs');
    create table stacks_b1 (id text primary key not null, rev text not null, doc text not null) strict;
    insert into stacks_index (id, book, fields) values (1, 1, 'phase'), (2, 1, 'n');
    create index stacks_i1 on stacks_b1 (${indexColumns([fieldPath('phase')], new Map())});
    create index stacks_i2 on stacks_b1 (${indexColumns([fieldPath('n')], new Map())});
    insert into stacks_b1 values ('a', 'r1', '{"id":"a","phase":"open","n":1}'), ('b', 'r2', '{"id":"b","phase":"new","n":2}');`)
  const stacks = await openWith(file, ['phase'])
  expect(await idsOf(stacks, OPEN)).toEqual(['a'])
  await writsOf(stacks).patch('b', { phase: 'open' })
  expect(await idsOf(stacks, OPEN)).toEqual(['a', 'b'])
  const columns = (index: string): unknown =>
    db.prepare(`select group_concat(coalesce(name, '(doc)')) as names from pragma_index_info(?)`).pluck().get(index)
  expect(columns('stacks_i1')).toBe('k1,id')
  // This one was not declared again; queries still use it.
  expect(columns('stacks_i2')).toBe('(doc),id')
  expect(planOf(db, { where: [['n', '=', 2]] })).toMatch(/USING INDEX stacks_i2/)
  expect(await idsOf(stacks, { where: [['n', '=', 2]] })).toEqual(['b'])
})
