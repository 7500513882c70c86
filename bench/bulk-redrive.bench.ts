// How long does it take to redrive a hundred thousand dead items, by a process that is killed with -9 twice in the middle and gone on
// with by another? Also: how soon is the first page of them listed, and how soon are they counted?
// `npm run bench -- bulk-redrive [items] [sqlite,postgres,redis]`
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { killedBulk } from '../test/ops/bulk/killed-bulk.js'
import { startPostgres, startRedis } from '../test/servers/index.js'

const ITEMS = Number(process.argv[2] ?? 100_000)
const ON = (process.argv[3] ?? 'sqlite,postgres,redis').split(',')

console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}`)
console.log(`${ITEMS} dead items, pages of 500, killed at a quarter and at a half`)

for (const name of ON) {
  const folder = mkdtempSync(join(tmpdir(), 'bulk-redrive-'))
  const server = name === 'postgres' ? await startPostgres() : name === 'redis' ? await startRedis() : undefined
  try {
    const bulk = await killedBulk(server?.url ?? `sqlite:${join(folder, 'work.db')}`, ITEMS)
    const { report, redriven, openGroups, deadLeft, actingMs, actedOn, killedAt } = bulk
    const isExact =
      report.done === ITEMS && report.passed === 0 && redriven.get(1) === ITEMS && redriven.size === 1 && deadLeft === 0
    console.log(
      [
        name.padEnd(9),
        isExact && openGroups === ITEMS
          ? 'exact'
          : `WRONG ${JSON.stringify({ report, redriven: [...redriven], deadLeft })}`,
        `${Math.round((actedOn / actingMs) * 1_000)} items/s`,
        `${Math.round(actingMs)} ms for ${actedOn}`,
        `killed at ${killedAt.join(' and ')}`,
        `first page ${bulk.firstPageMs.toFixed(1)} ms`,
        `count ${bulk.countedMs.toFixed(1)} ms`,
        `load ${loadavg()[0]?.toFixed(1)}`,
      ].join('  '),
    )
  } finally {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
