import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type BookQuery, openStacks, postgresStacks, sqliteStacks } from 'millrace/guild/stacks'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Expressions, Parameters } from '../../../src/guild/stacks/postgres/expression.js'
import { parseQuery } from '../../../src/guild/stacks/query/parse-query.js'
import { querySql } from '../../../src/guild/stacks/sqlite/expression.js'
import { startPostgres } from '../../servers/index.js'
import { sqliteBook } from './sqlite-book.js'

const CLERK = [
  'phase',
  'type',
  'createdAt',
  'parentId',
  ['phase', 'type'],
  ['phase', 'createdAt'],
  ['parentId', 'phase'],
]
const INDEXES = ['phase', 'createdAt', ['parentId', 'phase'], 'status.rig']

/** Questions that a declared index must answer without reading the book. */
const INDEXED: Readonly<Record<string, BookQuery>> = {
  equality: { where: [['phase', '=', 'p7']] },
  'a nested field': { where: [['status.rig', '=', 'r9']] },
  'a tuple': {
    where: [
      ['parentId', '=', 'w-5'],
      ['phase', '=', 'p7'],
    ],
  },
  'a range': { where: [['createdAt', '>', 4_990]] },
  'a list of values': { where: [['phase', 'IN', ['p1', 'p2']]] },
  'a disjunction': { where: { or: [[['phase', '=', 'p1']], [['status.rig', '=', 'r2']]] } },
  'an order with a limit': { orderBy: ['createdAt', 'asc'], limit: 10 },
  'a descending order with a limit': { orderBy: ['createdAt', 'desc'], limit: 10 },
  'an id': { where: [['id', '=', 'w-5']] },
}

const ofParent = ['parentId', '=', 'w-777'] as const
const FAMILY: Readonly<Record<string, BookQuery>> = {
  'a child under way': {
    where: [ofParent, ['phase', 'IN', ['new', 'open', 'stuck', 'failed', 'cancelled']]],
    limit: 1,
  },
  'all children': { where: [ofParent] },
  'children of twenty types': {
    where: {
      or: Array.from({ length: 20 }, (_, n) => [ofParent, ['type', '=', `t${n}`], ['phase', 'IN', ['done', 'p1']]]),
    },
  },
}

const COUNT = 5_000

describe('queries on declared indexes', () => {
  let server: Awaited<ReturnType<typeof startPostgres>>
  let client: pg.Client
  const folder = mkdtempSync(join(tmpdir(), 'millrace-plans-'))
  const file = join(folder, 'plans.sqlite')
  beforeAll(async () => {
    server = await startPostgres({ settings: { fsync: 'off' } })
    for (const backend of [sqliteStacks({ file }), postgresStacks({ connectionString: server.url })]) {
      const stacks = await openStacks({ backend })
      await stacks.declare('clerk', { writs: { indexes: INDEXES }, fresh: { indexes: CLERK } })
      await stacks.close()
    }
    client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const doc = `jsonb_build_object('id', 'w-' || n, 'phase', 'p' || n % 500, 'createdAt', n, 'parentId', 'w-' || n / 3,
      'status', jsonb_build_object('rig', 'r' || n % 400))`
    await client.query(
      `insert into millrace.stacks_b1 select 'w-' || n, 'rev', ${doc} from generate_series(1, ${COUNT}) n; analyze millrace.stacks_b1`,
    )
    await client.query('alter table millrace.stacks_b2 set (autovacuum_enabled = false)')
    await client.query(`insert into millrace.stacks_b2 select 'w-' || n, 'rev', jsonb_build_object('id', 'w-' || n,
      'type', 't' || n % 3, 'phase', case when n % 50 = 0 then 'open' else 'done' end, 'createdAt', n,
      'parentId', 'w-' || n / 3) from generate_series(1, 50000) n`)
    const db = new Database(file)
    db.exec(
      `insert into stacks_b1 (id, rev, doc) select 'w-' || value, 'rev', json_object('id', 'w-' || value, 'phase', 'p' || value % 500,
         'createdAt', value, 'parentId', 'w-' || value / 3, 'status', json_object('rig', 'r' || value % 400))
       from (with recursive s(value) as (select 1 union all select value + 1 from s where value < ${COUNT}) select value from s);`,
    )
    db.close()
  })
  afterAll(async () => {
    await client.end()
    await server.stop()
    rmSync(folder, { recursive: true })
  })

  it.each(Object.entries(INDEXED))('SQLite: %s is answered by an index', (_, query) => {
    const db = new Database(file, { readonly: true })
    const { text, values } = querySql(parseQuery(query), sqliteBook(db, { ownerId: 'clerk', book: 'writs' }).columns)
    const plan = db
      .prepare(`explain query plan select doc from stacks_b1 ${text}`)
      .all(...values)
      .map((row) => (row as { detail: string }).detail)
      .join('\n')
    db.close()
    expect(plan).toMatch(/USING (COVERING )?INDEX/)
    // "SCAN … USING INDEX" is the walk along an order, which the limit ends; a bare scan reads everything.
    expect(plan).not.toMatch(/SCAN stacks_b1$/m)
    if (query.where === undefined) expect(plan).not.toMatch(/USE TEMP B-TREE FOR ORDER BY/)
  })

  // What the Clerk asks when a child has ended, in a book that the server knows nothing about yet.
  it.each(Object.entries(FAMILY))('PostgreSQL without statistics: %s is answered by an index', async (_, query) => {
    const parameters = new Parameters()
    const text = new Expressions('millrace').query(parseQuery(query), parameters)
    const { rows } = await client.query({
      text: `explain select doc from millrace.stacks_b2 ${text}`,
      values: [...parameters.values],
      rowMode: 'array',
    })
    const plan = rows.flat().join('\n')
    expect(plan).toMatch(/Index Cond: .*parentId/)
    expect(plan).not.toMatch(/Seq Scan/)
    // Along another index it would read the children of all parents.
    for (const line of plan.split('\n').filter((one) => one.includes('Index Cond'))) expect(line).toContain('parentId')
  })

  it.each(Object.entries(INDEXED))('PostgreSQL: %s is answered by an index', async (_, query) => {
    const parameters = new Parameters()
    const text = new Expressions('millrace').query(parseQuery(query), parameters)
    const { rows } = await client.query({
      text: `explain select doc from millrace.stacks_b1 ${text}`,
      values: [...parameters.values],
      rowMode: 'array',
    })
    const plan = rows.flat().join('\n')
    expect(plan).toMatch(/Index/)
    expect(plan).not.toMatch(/Seq Scan/)
  })
})
