// Does a transaction that touches three documents cost the same in a store of a hundred and of a million documents?
//
// On PostgreSQL it does. On SQLite the trees of a large file cost more by themselves: pages that no core has at hand, and two pages
// for each transaction that are written back to their own places. So there the same transaction is measured on the bare library
// too, over the same rows by the same trees with the same settings, in turn with the store's. That is the floor; what is left without
// it is the store's own.
//
// Both sizes hold rows of the lengths that the store writes, and no document grows: in the small store each would have grown before
// the measurement began, in the large one during it. A round is long enough for a checkpoint in each store. The answer is the
// difference, and the median over the rounds of the ratios: in time, and in time of this process on a core, which a busy machine
// does not stretch. (SQLite runs in this process; PostgreSQL does not, and there the second says little.)
//
//   npm run bench -- stacks-cost            (SIZE=100000 for a shorter one, ON=sqlite without PostgreSQL)
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { openStacks, postgresStacks, type Stacks, sqliteStacks } from '../src/guild/stacks/index.js'
import { startPostgres } from '../test/servers/index.js'

const LARGE = Number(process.env['SIZE'] ?? 1_000_000)
const SMALL = 100
const ROUNDS = 35
const WARM_UP = 5
/** Transactions of a round. On SQLite enough for a checkpoint; on a server each takes many times as long. */
const PER_ROUND = { sqlite: 400, postgres: 100 }
const INDEXES = ['phase', 'createdAt', ['parentId', 'phase']]

interface Writ {
  readonly id: string
  readonly phase: string
  readonly createdAt: number
  readonly parentId: string
  readonly n: number
}

/** One transaction over three documents. */
type TouchThree = () => Promise<void> | void

interface Pair {
  readonly name: string
  readonly small: TouchThree
  readonly large: TouchThree
}

/** Counts round and round with three digits, so that no document changes its length. */
const counted = (n: number) => 100 + ((n + 1) % 900)
const anyOf = (size: number) => 1 + Math.floor(Math.random() * size)

/** Reads one by its id and changes it, finds one by an index and changes it, and puts one more: three documents. */
function touchThree(stacks: Stacks, size: number): TouchThree {
  const book = stacks.book<Writ>('clerk', 'writs')
  return () =>
    stacks.transaction(
      async () => {
        const id = `w-${anyOf(size)}`
        const writ = await book.get(id)
        await book.patch(id, { n: counted(writ!.n) })
        const [found] = await book.find({
          where: [['createdAt', '>=', anyOf(size)]],
          orderBy: ['createdAt', 'asc'],
          limit: 1,
        })
        await book.patch(found!.id, { n: counted(found!.n) })
        await book.put({ id: `x-${anyOf(size) % 10}`, phase: 'extra', createdAt: -1, parentId: 'none', n: 100 })
      },
      { retries: 10 },
    )
}

async function compare(pairs: readonly Pair[], perRound: number): Promise<void> {
  const rounds = pairs.map(() => ({ small: [] as Cost[], large: [] as Cost[] }))
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [i, pair] of pairs.entries()) {
      for (const which of ['small', 'large'] as const) {
        const cost = await costOf(pair[which], perRound)
        if (round >= WARM_UP) rounds[i]![which].push(cost)
      }
    }
  }
  for (const kind of ['wallUs', 'cpuUs'] as const) {
    const means: { readonly less: number; readonly more: number }[] = []
    for (const [i, { name }] of pairs.entries()) {
      const [small, large] = [rounds[i]!.small, rounds[i]!.large].map((list) => list.map((cost) => cost[kind]))
      const ratio = median(large!.map((value, round) => value / small![round]!))
      const [less, more] = [mean(small!), mean(large!)]
      means.push({ less, more })
      console.log(
        `${name} ${kind}: ${less.toFixed(0)} beside ${SMALL} documents, ${more.toFixed(0)} beside ${LARGE}: ` +
          `${(more - less).toFixed(0)} more, ratio ${(more / less).toFixed(2)} (median of the rounds ${ratio.toFixed(2)})`,
      )
    }
    const [store, floor] = means
    if (store === undefined || floor === undefined) continue
    const [less, more] = [store.less - floor.less, store.more - floor.more]
    console.log(
      `  without the bare transaction: ${less.toFixed(0)} and ${more.toFixed(0)}, ratio ${(more / less).toFixed(2)}`,
    )
  }
}

interface Cost {
  readonly wallUs: number
  readonly cpuUs: number
}

/** The mean cost of a transaction in one round. */
async function costOf(touch: TouchThree, perRound: number): Promise<Cost> {
  const [begun, used] = [performance.now(), process.cpuUsage()]
  for (let n = 0; n < perRound; n += 1) await touch()
  const { user, system } = process.cpuUsage(used)
  return { wallUs: ((performance.now() - begun) * 1000) / perRound, cpuUs: (user + system) / perRound }
}

const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!
const mean = (list: readonly number[]) => list.reduce((all, one) => all + one, 0) / list.length

console.log(
  `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, ${ROUNDS - WARM_UP} rounds of ${PER_ROUND.sqlite} (SQLite) or ${PER_ROUND.postgres} (PostgreSQL) transactions`,
)

/** Rows as the store writes them, revisions of 22 characters included, made past it: it would take an hour on a server. */
const sqliteRows = (size: number) => `
  select 'w-' || value as id, substr(hex(randomblob(11)), 1, 22) as rev, json_object('id', 'w-' || value, 'phase', 'p' || value % 7,
    'createdAt', value, 'parentId', 'w-' || value / 3, 'n', 100) as doc, cast(value as real) as at
  from (with recursive s(value) as (select 1 union all select value + 1 from s where value < ${size}) select value from s)`

async function onSqlite(folder: string, size: number): Promise<Stacks> {
  const file = join(folder, `${size}.sqlite`)
  const stacks = await openStacks({ backend: sqliteStacks({ file, driver: 'better-sqlite3' }) })
  await stacks.declare('clerk', { writs: { indexes: INDEXES } })
  const db = new Database(file)
  db.exec(`insert into stacks_b1 (id, rev, doc) select id, rev, doc from (${sqliteRows(size)})`)
  db.pragma('wal_checkpoint(truncate)')
  db.close()
  return stacks
}

/** The same three rows by the same trees, and nothing else: the barest transaction that there can be. */
function bare(folder: string, size: number): { readonly db: Database.Database; readonly touch: TouchThree } {
  const db = new Database(join(folder, `bare-${size}.sqlite`))
  for (const setting of ['journal_mode = wal', 'synchronous = normal', 'cache_size = -8192']) db.pragma(setting)
  db.exec(`create table writs (id text primary key not null, rev text not null, doc text not null, at any) strict;
    insert into writs ${sqliteRows(size)}; create index writs_at on writs (at, id)`)
  db.pragma('wal_checkpoint(truncate)')
  const byId = db.prepare<[string], [string]>('select doc from writs where id = ?').raw()
  const next = db
    .prepare<[number], [string, string]>("select id, doc from writs where at >= ? and at < '' order by at, id limit 1")
    .raw()
  const update = db.prepare('update writs set rev = ?, doc = ? where id = ?')
  const put = db.prepare('insert or replace into writs values (?, ?, ?, -1.0)')
  const [begin, commit] = [db.prepare('begin immediate'), db.prepare('commit')]
  const rev = 'a-revision-of-22-chars'
  const extra = (n: number) => JSON.stringify({ id: `x-${n}`, phase: 'extra', createdAt: -1, parentId: 'none', n: 100 })
  for (let n = 0; n < 10; n += 1) put.run(`x-${n}`, rev, extra(n))
  const touch = (): void => {
    begin.run()
    const id = `w-${anyOf(size)}`
    update.run(rev, byId.get(id)![0], id)
    const [found, doc] = next.get(anyOf(size))!
    update.run(rev, doc, found)
    const n = anyOf(size) % 10
    update.run(rev, extra(n), `x-${n}`)
    commit.run()
  }
  return { db, touch }
}

async function onPostgres(url: string, size: number): Promise<Stacks> {
  const schema = `cost_${size}`
  const stacks = await openStacks({ backend: postgresStacks({ connectionString: url, schema }) })
  await stacks.declare('clerk', { writs: { indexes: INDEXES } })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`insert into ${schema}.stacks_b1 select 'w-' || n, substr(md5(n::text), 1, 22), jsonb_build_object('id', 'w-' || n,
    'phase', 'p' || n % 7, 'createdAt', n, 'parentId', 'w-' || n / 3, 'n', 100) from generate_series(1, ${size}) n`)
  await client.query(`vacuum analyze ${schema}.stacks_b1`)
  await client.end()
  return stacks
}

async function compareSqlite(folder: string): Promise<void> {
  const [small, large] = [await onSqlite(folder, SMALL), await onSqlite(folder, LARGE)]
  const [bareSmall, bareLarge] = [bare(folder, SMALL), bare(folder, LARGE)]
  const pairs = [
    { name: 'SQLite, Stacks', small: touchThree(small, SMALL), large: touchThree(large, LARGE) },
    { name: 'SQLite, bare  ', small: bareSmall.touch, large: bareLarge.touch },
  ]
  await compare(pairs, PER_ROUND.sqlite)
  for (const stacks of [small, large]) await stacks.close()
  for (const { db } of [bareSmall, bareLarge]) db.close()
}

async function comparePostgres(url: string): Promise<void> {
  const [small, large] = [await onPostgres(url, SMALL), await onPostgres(url, LARGE)]
  const pair = { name: 'PostgreSQL', small: touchThree(small, SMALL), large: touchThree(large, LARGE) }
  await compare([pair], PER_ROUND.postgres)
  for (const stacks of [small, large]) await stacks.close()
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-cost-'))
try {
  await compareSqlite(folder)
} finally {
  rmSync(folder, { recursive: true })
}
if (process.env['ON'] !== 'sqlite') {
  const server = await startPostgres()
  try {
    await comparePostgres(server.url)
  } finally {
    await server.stop()
  }
}
