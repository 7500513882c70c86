import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type BackendTx, type StacksBackend, sqliteStacks } from 'millrace/guild/stacks'
import { expect, it, onTestFinished } from 'vitest'
import type { InternalQuery } from '../../../src/guild/stacks/query/filter.js'
import { querySql } from '../../../src/guild/stacks/sqlite/expression.js'
import { sqliteBook } from '../stacks/sqlite-book.js'
import { spiderGuild } from './spider-guild.js'

const GATED = 100_000
const RUNNABLE = 10

// W10, W12
it(`${GATED} gated writs and ${RUNNABLE} runnable ones: a crawl reads only what it acts on`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-spider-scale-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'stacks.sqlite')
  // One gated writ is made in the ordinary way; the others are copies of its documents, all older than what can run.
  const first = await spiderGuild({ backend: () => sqliteStacks({ file }), close: async () => undefined })
  const draft = await first.clerk.post({ title: 'later', body: '', draft: true })
  const gated = await first.post('gated')
  await first.follows(gated, draft)
  await first.g.shutdown()
  const db = new Database(file)
  const tables = copyGated(db, gated.id, draft.id)
  expect(
    db.prepare(`select count(*) n from ${tables.get('spider/dispatch')} where doc ->> 'state' = 'held'`).get(),
  ).toEqual({ n: GATED })

  const read = new Reads()
  const second = await spiderGuild({
    backend: () => read.counted(sqliteStacks({ file })),
    close: async () => undefined,
  })
  onTestFinished(() => second.g.shutdown())
  for (let n = 0; n < RUNNABLE; n += 1) await second.post(`runnable ${n}`)
  const most = { documents: 0, queries: 0 }
  for (let crawls = 0; ; crawls += 1) {
    read.clear()
    const result = await second.spider.crawl()
    most.documents = Math.max(most.documents, read.documents)
    most.queries = Math.max(most.queries, read.queries.length)
    for (const { book, query } of read.queries) expectIndexed(db, book, query)
    if (result === null) break
    expect(crawls).toBeLessThan(2 * RUNNABLE + 1)
  }
  console.log(
    `the largest crawl read ${most.documents} documents by ${most.queries} queries, beside ${GATED} gated writs`,
  )
  expect(await second.clerk.count({ phase: 'completed' })).toBe(RUNNABLE)
  expect(most.documents).toBeLessThan(40)
  // The end of one that all of them wait for is passed on in steps, not in one crawl.
  await second.clerk.transition(draft.id, 'cancelled')
  read.clear()
  expect(await second.spider.crawl()).toMatchObject({ action: 'rig-spawned' })
  expect(read.documents).toBeLessThan(10_000)
  db.close()
})

/** What a store was asked. */
class Reads {
  documents = 0
  queries: { readonly book: string; readonly query: InternalQuery }[] = []

  clear(): void {
    this.documents = 0
    this.queries = []
  }

  /** The backend, with everything that is read through it counted. */
  counted(backend: StacksBackend): StacksBackend {
    const find = (target: BackendTx) => async (ref: { ownerId: string; book: string }, query: InternalQuery) => {
      this.queries.push({ book: `${ref.ownerId}/${ref.book}`, query })
      const found = await target.find(ref as never, query)
      this.documents += found.length
      return found
    }
    const get = (target: BackendTx) => async (ref: never, id: string) => {
      this.documents += 1
      return target.get(ref, id)
    }
    const watched = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (_, name) => {
          if (name === 'find') return find(target as unknown as BackendTx)
          if (name === 'get') return get(target as unknown as BackendTx)
          if (name === 'reads') return watched((target as unknown as StacksBackend).reads)
          if (name === 'begin') return async (options: never) => watched(await backend.begin(options))
          const value = Reflect.get(target, name, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    return watched(backend)
  }
}

/** "SCAN … USING INDEX" is the walk along an order, which the limit ends; a bare scan reads everything. */
function expectIndexed(db: Database.Database, key: string, query: InternalQuery): void {
  const at = key.lastIndexOf('/')
  const { table, columns } = sqliteBook(db, { ownerId: key.slice(0, at), book: key.slice(at + 1) })
  const { text, values } = querySql(query, columns)
  const plan = db
    .prepare(`explain query plan select doc from ${table} ${text}`)
    .all(...values)
    .map((row) => (row as { detail: string }).detail)
    .join('\n')
  // The book of slots has as many documents as engines may run at once.
  if (key !== 'spider/slots') expect(plan, text).toMatch(/USING (COVERING )?INDEX/)
}

/** Copies the documents of the one gated writ; returns the tables by book. */
function copyGated(db: Database.Database, gatedId: string, draftId: string): Map<string, string> {
  const books = db.prepare('select id, owner, name from stacks_book').all() as {
    id: number
    owner: string
    name: string
  }[]
  const tables = new Map(books.map(({ id, owner, name }) => [`${owner}/${name}`, `stacks_b${id}`]))
  const at = '2020-01-01T00:00:00.000Z'
  const writ = "('w-0-' || n)"
  const copies: [string, string, string, string][] = [
    ['clerk/writs', gatedId, writ, `'$.createdAt', '${at}'`],
    ['clerk/links', `${gatedId}:${draftId}:follows`, `(${writ} || ':${draftId}:follows')`, `'$.sourceId', ${writ}`],
    ['spider/dispatch', gatedId, writ, `'$.at', '${at} ' || ${writ}`],
    [
      'spider/waits',
      `${draftId}>${gatedId}`,
      `('${draftId}>' || ${writ})`,
      `'$.writId', ${writ}, '$.at', '${at} ' || ${writ}`,
    ],
  ]
  for (const [book, id, newId, fields] of copies) {
    const table = tables.get(book)
    db.exec(
      `insert into ${table} (id, rev, doc) select ${newId}, 'rev-' || n, json_set(doc, '$.id', ${newId}, ${fields})
       from ${table}, (with recursive s(n) as (select 1 union all select n + 1 from s where n < ${GATED - 1}) select n from s)
       where id = '${id}'`,
    )
  }
  return tables
}
