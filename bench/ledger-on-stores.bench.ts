// How dear are the ledger's guarantees? Each verb of the backends (on PostgreSQL: of the tracer) in batches of 100, beside the barest
// statements that move the
// same items on the same store in the same run. `npm run bench -- ledger-on-stores [sqlite|postgres|redis]`
//
// bare insert, claim, delete   no group, gate, lease time, fence or record of the outcome; the narrowest rows.
// bare delete+record           the same, and one finished row with the result: the least that a queue with results writes.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { Redis } from 'ioredis'
import pg from 'pg'
import { postgresBackend } from '../src/backends/postgres/index.js'
import { redisBackend } from '../src/backends/redis/index.js'
import { sqliteBackend } from '../src/backends/sqlite/index.js'
import { ownedBy } from '../src/ports/find-ledger.js'
import type { ClaimedItem } from '../src/ports/item.js'
import type { Ledger } from '../src/ports/ledger.js'
import { ledgerOn } from '../test/backends/ledger-on.js'
import { ask, children, contribute, enqueue, finish, gate, item, times } from '../test/backends/settlements.js'
import { startPostgres, startRedis } from '../test/servers/index.js'

const BATCH = 100
const BATCHES = 40
const ROUNDS = 7
const INPUT = JSON.stringify({ to: 'x'.repeat(90) })

/** The barest form of a store: what `performance.md` calls the raw limit. */
interface Bare {
  insert(ids: readonly string[]): unknown
  claim(): unknown
  remove(): unknown
  removeAndRecord(): unknown
}

/** What is measured of a ledger, be it a tracer or a whole backend. */
type Verbs = Pick<Ledger, 'claim' | 'commit'>

type Figures = Record<string, number[]>

/**
 * Processor time of this process and of the servers' processes, in µs. Not the clock's: on a machine that others use too it
 * says little, and a commit's wait for the disk is the same for ours and for the barest.
 */
function spent(pids: readonly number[]): number {
  const { user, system } = process.cpuUsage()
  const ofServer = pids.map((pid) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000)
  return ofServer.reduce((sum, each) => sum + each, user + system)
}

async function measure(name: string, tracer: Verbs, bare: Bare, pids: readonly number[] = []): Promise<void> {
  const figures: Figures = {}
  const timed = async (into: Figures, what: string, run: (batch: number) => unknown) => {
    const from = spent(pids)
    for (let i = 0; i < BATCHES; i++) await run(i)
    const list = into[what] ?? []
    into[what] = list
    list.push((spent(pids) - from) / (BATCH * BATCHES))
  }
  let serial = 0
  const ids = () => times(BATCH, () => `0190${(serial++).toString(16).padStart(28, '0')}`)
  const claim = async () => (await tracer.claim(ask(BATCH))).items
  for (let round = -1; round < ROUNDS; round++) {
    const kept: Figures = round < 0 ? {} : figures
    const claimed: (readonly ClaimedItem[])[] = []
    await timed(kept, 'bare insert', () => bare.insert(ids()))
    await timed(kept, 'enqueue', () => tracer.commit(ids().map((id) => enqueue(item(id, { input: INPUT })))))
    await timed(kept, 'bare claim+delete', async () => {
      await bare.claim()
      await bare.remove()
    })
    await timed(kept, 'claim', async () => claimed.push(await claim()))
    await timed(kept, 'settle: root alone', (i) =>
      tracer.commit(claimed[i]!.map((one) => finish(one, [contribute(one.envelope.groupId, '1')], '1'))),
    )
    for (let i = 0; i < BATCHES; i++) await bare.insert(ids())
    await timed(kept, 'bare claim', () => bare.claim())
    await timed(kept, 'bare delete+record', () => bare.removeAndRecord())

    // One group for each batch, and a gate over it.
    for (let i = 0; i < BATCHES; i++) {
      await tracer.commit(ids().map((id) => enqueue(item(id, { input: INPUT, groupId: `g${round}-${i}` }))))
    }
    claimed.length = 0
    for (let i = 0; i < BATCHES; i++) claimed.push(await claim())
    await timed(kept, 'settle: one group of 100', (i) =>
      tracer.commit(claimed[i]!.map((one) => finish(one, [contribute(one.envelope.groupId, '1')], '1'))),
    )

    for (let i = 0; i < BATCHES; i++) await tracer.commit(ids().map((id) => enqueue(item(id, { input: INPUT }))))
    claimed.length = 0
    for (let i = 0; i < BATCHES; i++) claimed.push(await claim())
    await timed(kept, 'settle: each pushes a child', (i) =>
      tracer.commit(
        claimed[i]!.map((one) => finish(one, children(one, [item(`${one.lease.id}-c`, { input: INPUT })]), '1')),
      ),
    )
    claimed.length = 0
    for (let i = 0; i < BATCHES; i++) claimed.push(await claim())
    for (let i = 0; i < BATCHES; i++) {
      const held = item(`${round}-${i}-held`)
      const members = claimed[i]!.map(({ lease }) => lease.id)
      await tracer.commit([{ guard: { by: 'absent', id: held.id }, effects: gate(held, members) }])
    }
    await timed(kept, 'settle: 100 members of a gate', (i) => tracer.commit(claimed[i]!.map((one) => finish(one))))
    for (let i = 0; i < BATCHES; i += BATCH) await tracer.commit((await claim()).map((one) => finish(one)))
  }
  print(name, figures)
}

function print(name: string, figures: Figures): void {
  const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!
  // Ratios are taken round by round, because the machine's pace wanders.
  const ratio = (ours: string, ...theirs: string[]) =>
    median(figures[ours]!.map((us, i) => us / theirs.reduce((sum, each) => sum + figures[each]![i]!, 0)))
  console.log(
    `\n${name}: µs of processor time per item, client and server, batches of ${BATCH}, medians of ${ROUNDS} rounds of ${BATCHES}`,
  )
  for (const [each, list] of Object.entries(figures)) {
    const range = `${Math.min(...list).toFixed(1)} to ${Math.max(...list).toFixed(1)}`
    console.log(`  ${each.padEnd(32)} ${median(list).toFixed(1).padStart(6)}   ${range}`)
  }
  const cycle = figures['claim']!.map((us, i) => us + figures['settle: root alone']![i]!)
  figures['cycle'] = cycle
  console.log(`  enqueue / bare insert                     ${ratio('enqueue', 'bare insert').toFixed(2)}`)
  console.log(`  claim+settle / bare claim+delete          ${ratio('cycle', 'bare claim+delete').toFixed(2)}`)
  console.log(
    `  claim+settle / bare claim+delete+record   ${ratio('cycle', 'bare claim', 'bare delete+record').toFixed(2)}`,
  )
}

async function sqlite(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const backend = sqliteBackend({ file: join(dir, 'ledger.db') })
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error('the SQLite backend has its own ledger')
  const db = new Database(join(dir, 'bare.db'))
  db.pragma('journal_mode = wal')
  db.pragma('synchronous = normal')
  db.exec(`create table q (seq integer primary key, id text not null unique, input text not null, state int not null);
           create index ready on q (seq) where state = 0; create table done (id text primary key, result text) without rowid`)
  const insert = db.prepare('insert into q (id, input, state) values (?, ?, 0)')
  const take = db.prepare(
    'update q set state = 1 where seq in (select seq from q where state = 0 order by seq limit ?) returning seq, id, input',
  )
  const drop = db.prepare('delete from q where seq = ?')
  const record = db.prepare('insert into done values (?, ?)')
  const taken: { seq: number; id: string }[][] = []
  await measure('SQLite (WAL, synchronous normal; the whole backend)', owned.open({ prefix: '' }), {
    insert: db.transaction((ids: readonly string[]) => {
      for (const id of ids) insert.run(id, INPUT)
    }).immediate,
    claim: db.transaction(() => taken.push(take.all(BATCH) as { seq: number; id: string }[])).immediate,
    remove: db.transaction(() => {
      for (const { seq } of taken.shift()!) drop.run(seq)
    }).immediate,
    removeAndRecord: db.transaction(() => {
      for (const { seq, id } of taken.shift()!) {
        drop.run(seq)
        record.run(id, '1')
      }
    }).immediate,
  })
  db.close()
  await backend.close()
  rmSync(dir, { recursive: true })
}

async function postgres(): Promise<void> {
  const server = await startPostgres({})
  const pool = new pg.Pool({ connectionString: server.url, max: 1 })
  const ours = postgresBackend({ pool })
  await ours.migrate()
  const owned = ownedBy(ours, [])
  if (!('open' in owned)) throw new Error('the backend has a native ledger')
  const ledger = owned.open({ prefix: 'work:' })
  const bare = new pg.Client(server.url)
  await bare.connect()
  await bare.query(`create table q (id text primary key, seq bigserial, input text not null, state int not null);
    create index ready on q (seq) where state = 0; create table done (id text primary key, result text)`)
  const backend = async (one: pg.Client | pg.Pool) =>
    (await one.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid
  const pids = [await backend(pool), await backend(bare)]
  const taken: string[][] = []
  const run = (name: string, text: string, values: unknown[]) => bare.query<{ id: string }>({ name, text, values })
  await measure(
    'PostgreSQL (fsync on, one connection)',
    ledger,
    {
      insert: (ids) =>
        run('i', 'insert into q (id, input, state) select id, $2, 0 from unnest($1::text[]) id', [ids, INPUT]),
      claim: async () => {
        const text = `with c as (select id from q where state = 0 order by seq limit $1 for update skip locked)
        update q set state = 1 from c where q.id = c.id returning q.id, q.input`
        taken.push((await run('c', text, [BATCH])).rows.map(({ id }) => id))
      },
      remove: () => run('d', 'delete from q where id = any($1)', [taken.shift()]),
      removeAndRecord: () =>
        run('r', "with d as (delete from q where id = any($1) returning id) insert into done select id, '1' from d", [
          taken.shift(),
        ]),
    },
    pids,
  )
  await Promise.all([pool.end(), bare.end()])
  await server.stop()
}

async function redis(): Promise<void> {
  const server = await startRedis()
  const client = new Redis(server.url)
  const script = (lua: string) => (words: readonly (string | number)[]) => client.eval(lua, 0, ...words)
  // Each writes what many items need in one command: a script spends its time on calls.
  const insert = script(`local bodies, ready = {}, {}
    for i = 1, #ARGV, 2 do
      bodies[i], bodies[i + 1], ready[i], ready[i + 1] = 'q:' .. ARGV[i], ARGV[i + 1], i, ARGV[i]
    end
    redis.call('MSET', unpack(bodies)) redis.call('ZADD', 'ready', unpack(ready))`)
  const take = script(`local out, keys, leases = {}, {}, {}
    local popped = redis.call('ZPOPMIN', 'ready', ARGV[1])
    for i = 1, #popped, 2 do
      leases[i], leases[i + 1], keys[#keys + 1], out[i] = 1, popped[i], 'q:' .. popped[i], popped[i]
    end
    redis.call('ZADD', 'leases', unpack(leases))
    for i, body in ipairs(redis.call('MGET', unpack(keys))) do out[2 * i] = body end
    return out`)
  const forget = `local keys, done = {}, {}
    for i = 1, #ARGV do keys[i], done[2 * i - 1], done[2 * i] = 'q:' .. ARGV[i], 'done:' .. ARGV[i], '1' end
    redis.call('ZREM', 'leases', unpack(ARGV)) redis.call('DEL', unpack(keys))`
  const drop = script(forget)
  const record = script(`${forget} redis.call('MSET', unpack(done))`)
  const taken: string[][] = []
  const backend = redisBackend({ url: server.url })
  await measure(
    'Redis (no persistence; the backend)',
    ledgerOn(backend),
    {
      insert: (ids) => insert(ids.flatMap((id) => [id, INPUT])),
      claim: async () => taken.push(((await take([BATCH])) as string[]).filter((_, i) => i % 2 === 0)),
      remove: () => drop(taken.shift()!),
      removeAndRecord: () => record(taken.shift()!),
    },
    [server.pid!],
  )
  await client.quit()
  await backend.close()
  await server.stop()
}

console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}`)
const only = process.argv[2]
for (const [name, run] of Object.entries({ sqlite, postgres, redis }))
  if (only === undefined || only === name) await run()
