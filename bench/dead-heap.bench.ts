// What people ask of 100,000 dead items with inputs of 2 kB each: the first page of a list, counts, groups of failures, flow.
// `npm run bench -- dead-heap` or `node --import tsx bench/dead-heap.bench.ts [items] [memory|sqlite|postgres|redis ...]`
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryBackend } from '../src/backends/memory/index.js'
import { postgresBackend } from '../src/backends/postgres/index.js'
import { redisBackend } from '../src/backends/redis/index.js'
import { sqliteBackend } from '../src/backends/sqlite/index.js'
import { ownedBy } from '../src/ports/find-ledger.js'
import type { Backend } from '../src/ports/ports.js'
import { figures, fillWithDead } from '../test/backends/dead-heap.js'
import { startPostgres, startRedis } from '../test/servers/index.js'

const ITEMS = Number(process.argv[2] ?? 100_000)
const WHICH = process.argv.length > 3 ? process.argv.slice(3) : ['memory', 'sqlite', 'postgres', 'redis']

async function measure(name: string, backend: Backend): Promise<void> {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error('the backend has a native ledger')
  const ledger = owned.open({ prefix: 'work:' })
  const from = performance.now()
  await fillWithDead(ledger, ITEMS)
  console.log(`\n${name}: ${ITEMS} dead items made in ${Math.round((performance.now() - from) / 1000)} s`)
  console.table(
    Object.fromEntries((await figures(ledger)).map(({ question, ms, answer }) => [question, { ms, answer }])),
  )
  console.log(
    `load ${loadavg()
      .map((n) => n.toFixed(1))
      .join(' ')}`,
  )
  await backend.close?.()
}

for (const which of WHICH) {
  if (which === 'memory') await measure('memory', memoryBackend({ maxEnded: ITEMS + 1 }))
  if (which === 'sqlite') {
    const folder = mkdtempSync(join(tmpdir(), 'dead-heap-'))
    await measure('sqlite', sqliteBackend({ file: join(folder, 'work.db') }))
    rmSync(folder, { recursive: true })
  }
  if (which === 'postgres') {
    const server = await startPostgres()
    await measure('postgres', postgresBackend({ connectionString: server.url, schema: 'dead_heap' }))
    await server.stop()
  }
  if (which === 'redis') {
    const server = await startRedis()
    await measure('redis', redisBackend({ url: server.url }))
    await server.stop()
  }
}
