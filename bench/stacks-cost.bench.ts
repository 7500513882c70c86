// Does a transaction that touches three documents cost the same in a store of a hundred and of a million documents?
// Alternating rounds, so that a busy machine slows both alike; the answer is the median, over the rounds, of how much more the
// large store took: in time, and in time of this process on a core, which a busy machine does not stretch. (SQLite runs in this
// process; PostgreSQL does not, and there the second says little.)
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
const ROUNDS = 45
const WARM_UP = 5
const PER_ROUND = 200
const INDEXES = ['phase', 'createdAt', ['parentId', 'phase']]

interface Writ {
  readonly id: string
  readonly phase: string
  readonly createdAt: number
  readonly parentId: string
  readonly n: number
}

/** Reads one by its id and changes it, finds one by an index and changes it, and puts one more: three documents. */
async function touchThree(stacks: Stacks, size: number): Promise<void> {
  const book = stacks.book<Writ>('clerk', 'writs')
  const any = () => 1 + Math.floor(Math.random() * size)
  await stacks.transaction(
    async () => {
      const id = `w-${any()}`
      const writ = await book.get(id)
      await book.patch(id, { n: (writ?.n ?? 0) + 1 })
      const [found] = await book.find({ where: [['createdAt', '>=', any()]], orderBy: ['createdAt', 'asc'], limit: 1 })
      if (found !== undefined) await book.patch(found.id, { n: found.n + 1 })
      await book.put({ id: `x-${any() % 10}`, phase: 'extra', createdAt: -1, parentId: 'none', n: 0 })
    },
    { retries: 10 },
  )
}

async function compare(
  name: string,
  stores: readonly { readonly stacks: Stacks; readonly size: number }[],
): Promise<void> {
  const rounds = stores.map((): { wallMs: number; cpuMs: number }[] => [])
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [i, { stacks, size }] of stores.entries()) {
      const [begun, used] = [performance.now(), process.cpuUsage()]
      for (let n = 0; n < PER_ROUND; n += 1) await touchThree(stacks, size)
      const { user, system } = process.cpuUsage(used)
      const cost = { wallMs: (performance.now() - begun) / PER_ROUND, cpuMs: (user + system) / 1000 / PER_ROUND }
      if (round >= WARM_UP) rounds[i]!.push(cost)
    }
  }
  const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!
  const sum = (list: readonly number[]) => list.reduce((all, one) => all + one, 0)
  for (const kind of ['wallMs', 'cpuMs'] as const) {
    const [small = [], large = []] = rounds.map((list) => list.map((round) => round[kind]))
    const ratio = median(large.map((value, round) => value / small[round]!))
    // Most rounds have no checkpoint of the log; here those that have one weigh in too.
    const overall = sum(large) / sum(small)
    console.log(
      `${name} ${kind}: ${median(small).toFixed(3)} beside ${SMALL} documents, ${median(large).toFixed(3)} beside ${LARGE}; ` +
        `median of the ratios ${ratio.toFixed(2)}, all rounds together ${overall.toFixed(2)}`,
    )
  }
}

console.log(
  `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, ${ROUNDS - WARM_UP} rounds of ${PER_ROUND} transactions`,
)

/** Filled past the store, which would take an hour on a server; the rows are those that it would write. */
async function onSqlite(folder: string, size: number): Promise<Stacks> {
  const file = join(folder, `${size}.sqlite`)
  const stacks = await openStacks({ backend: sqliteStacks({ file }) })
  await stacks.declare('clerk', { writs: { indexes: INDEXES } })
  const db = new Database(file)
  db.exec(`insert into stacks_b1 (id, rev, doc) select 'w-' || value, 'rev', json_object('id', 'w-' || value,
      'phase', 'p' || value % 7, 'createdAt', value, 'parentId', 'w-' || value / 3, 'n', 0)
    from (with recursive s(value) as (select 1 union all select value + 1 from s where value < ${size}) select value from s)`)
  db.close()
  return stacks
}

async function onPostgres(url: string, size: number): Promise<Stacks> {
  const schema = `cost_${size}`
  const stacks = await openStacks({ backend: postgresStacks({ connectionString: url, schema }) })
  await stacks.declare('clerk', { writs: { indexes: INDEXES } })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`insert into ${schema}.stacks_b1 select 'w-' || n, 'rev', jsonb_build_object('id', 'w-' || n,
    'phase', 'p' || n % 7, 'createdAt', n, 'parentId', 'w-' || n / 3, 'n', 0) from generate_series(1, ${size}) n`)
  await client.query(`vacuum analyze ${schema}.stacks_b1`)
  await client.end()
  return stacks
}

async function compareOn(name: string, make: (size: number) => Promise<Stacks>): Promise<void> {
  const stores = []
  for (const size of [SMALL, LARGE]) stores.push({ stacks: await make(size), size })
  await compare(name, stores)
  for (const { stacks } of stores) await stacks.close()
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-cost-'))
try {
  await compareOn('SQLite', (size) => onSqlite(folder, size))
} finally {
  rmSync(folder, { recursive: true })
}
if (process.env['ON'] !== 'sqlite') {
  const server = await startPostgres()
  try {
    await compareOn('PostgreSQL', (size) => onPostgres(server.url, size))
  } finally {
    await server.stop()
  }
}
