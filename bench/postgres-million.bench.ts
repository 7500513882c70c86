// Does a table through which a million items have passed stay small and fast? Enqueue, claim and settle in batches, with
// PostgreSQL's own settings for durability and autovacuum, and retention that really removes.
// `npm run bench -- postgres-million` or `node --import tsx bench/postgres-million.bench.ts [items] [keepSeconds]`
import { existsSync, readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import pg from 'pg'
import { postgresBackend } from '../src/backends/postgres/index.js'
import { newId } from '../src/core/ids.js'
import { ownedBy } from '../src/ports/find-ledger.js'
import type { Settlement } from '../src/ports/settlement.js'
import { startPostgres } from '../test/servers/index.js'

const ITEMS = Number(process.argv[2] ?? 1_000_000)
const KEEP_MS = Number(process.argv[3] ?? 60) * 1_000
const BATCH = 500
const SAMPLE = 10_000
const INPUT = JSON.stringify({ to: 'x'.repeat(90) })

const server = await startPostgres()
// Its connections stay, so that what they spend can be added up.
const pool = new pg.Pool({ connectionString: server.url, max: 3, idleTimeoutMillis: 0 })
const backend = postgresBackend({ pool, schema: 'million' })
const client = new pg.Client(server.url)
await client.connect()
const owned = ownedBy(backend, [])
if (!('open' in owned)) throw new Error('the backend has a native ledger')
const ledger = owned.open({ prefix: 'work:' })

const enqueues = (n: number): Settlement[] =>
  Array.from({ length: n }, () => {
    const id = newId()
    const now = Date.now()
    const item = { id, type: 'mail', groupId: id, input: INPUT, queueAt: now, startAt: now, attempt: 1, priority: 0 }
    return {
      guard: { by: 'absent', id },
      effects: [
        { do: 'joinGroup', groupId: id, count: 1 },
        { do: 'enqueue', item, queue: 'default', delayMs: 0 },
      ],
    }
  })
const claim = (max: number) => ledger.claim({ queues: [{ queue: 'default', max }], leaseMs: 60_000, worker: 'bench' })

/**
 * Processor time of this process and of the server's connections, in µs: on a machine that others use too, the clock on the wall
 * says little.
 */
async function pidsOfServer(): Promise<readonly number[]> {
  const { rows } = await client.query("select pid from pg_stat_activity where backend_type = 'client backend'")
  return rows.map(({ pid }) => Number(pid))
}
/** What each connection has used; of one that the pool has closed meanwhile, the last that was read. */
const used = new Map<number, number>()
function spent(pids: readonly number[]): number {
  const { user, system } = process.cpuUsage()
  const ofServer = pids.map((pid) => {
    const file = `/proc/${pid}/schedstat`
    if (existsSync(file)) used.set(pid, Number(readFileSync(file, 'utf8').split(' ')[0]) / 1_000)
    return used.get(pid) ?? 0
  })
  return ofServer.reduce((sum, each) => sum + each, user + system)
}

/** Claims and settles everything that is there; returns what the claims cost, in µs per item, each batch. */
async function drain(max: number): Promise<{ readonly cpu: number[]; readonly wall: number[] }> {
  const cost: { readonly cpu: number[]; readonly wall: number[] } = { cpu: [], wall: [] }
  const pids = await pidsOfServer()
  for (;;) {
    const from = performance.now()
    const spentBefore = spent(pids)
    const { items } = await claim(max)
    if (items.length === 0) return cost
    cost.cpu.push((spent(pids) - spentBefore) / items.length)
    cost.wall.push(((performance.now() - from) * 1_000) / items.length)
    await ledger.commit(
      items.map(({ lease, envelope: { id, groupId, attempt } }): Settlement => {
        const was = { attempt, startedAt: Date.now(), endedAt: Date.now(), worker: 'bench' }
        return {
          guard: { by: 'lease', lease },
          effects: [
            { do: 'recordAttempt', id, was },
            { do: 'complete', id, ending: 'completed', result: '"ok"', keepMs: KEEP_MS },
            { do: 'leaveGroup', groupId, count: 1 },
          ],
        }
      }),
    )
  }
}

async function sample(what: string): Promise<void> {
  for (let made = 0; made < SAMPLE; made += BATCH) await ledger.commit(enqueues(BATCH))
  const { cpu, wall } = await drain(100)
  const at = (list: number[], share: number) =>
    list.toSorted((a, b) => a - b)[Math.floor(share * (list.length - 1))]!.toFixed(1)
  console.log(
    `${what}: claim of 100 from ${SAMPLE}: median ${at(cpu, 0.5)} µs of processor time an item (p10 ${at(cpu, 0.1)}, ` +
      `p90 ${at(cpu, 0.9)}); wall ${at(wall, 0.5)} (${at(wall, 0.1)} to ${at(wall, 0.9)})`,
  )
}

async function sizes(what: string): Promise<void> {
  const { rows } = await client.query(
    `select c.relname as name, pg_size_pretty(pg_relation_size(c.oid)) as size, c.relkind as kind,
            coalesce(s.n_live_tup, 0)::int as live, coalesce(s.n_dead_tup, 0)::int as dead, s.autovacuum_count::int as vacuums
       from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
      where c.relnamespace = 'million'::regnamespace and c.relkind in ('r', 'i') and pg_relation_size(c.oid) > 16384
      order by c.relkind desc, pg_relation_size(c.oid) desc`,
  )
  console.log(`\n${what}`)
  for (const { name, size, kind, live, dead, vacuums } of rows) {
    const rest = kind === 'r' ? `, ${live} rows, ${dead} dead, ${vacuums} autovacuums` : ''
    console.log(`  ${kind === 'r' ? 'table' : 'index'} ${name}: ${size}${rest}`)
  }
  console.log()
}

const version = (await client.query('show server_version')).rows[0].server_version
const load = loadavg().map((n) => n.toFixed(1))
console.log(
  `PostgreSQL ${version}, Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, load ${load.join(' ')}`,
)
console.log(
  `${ITEMS} items in batches of ${BATCH}, ended items kept ${KEEP_MS / 1_000} s, fsync on, autovacuum at its defaults\n`,
)
await sample('warm-up')
await sample('empty start')
await sizes('after the empty start')
const from = performance.now()
let removed = 0
for (let passed = 0; passed < ITEMS; passed += 10 * BATCH) {
  for (let i = 0; i < 10; i += 1) await ledger.commit(enqueues(BATCH))
  await drain(BATCH)
  removed += (await claim(0)).removed ?? 0
  if (passed % 100_000 === 0) console.log(`  ${passed} passed, ${((performance.now() - from) / 1_000).toFixed(0)} s`)
}
const seconds = (performance.now() - from) / 1_000
console.log(
  `\n${ITEMS} items passed in ${seconds.toFixed(0)} s (${Math.round(ITEMS / seconds)} a second, wall time on a shared machine)`,
)
await sizes('right after')
await sample('after a million')
console.log(
  `load ${loadavg()
    .map((n) => n.toFixed(1))
    .join(' ')}, removed by idle claims ${removed}`,
)
await client.end()
await backend.close()
await pool.end()
await server.stop()
