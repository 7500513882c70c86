// Which library opens SQLite files fastest? The same statements through each that loads here, in alternating rounds.
// `npm run bench -- sqlite-drivers [folder with node_modules]`: libsql and another better-sqlite3 are taken from that folder.
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'

const BATCH = 100
const BATCHES = 100
const ROUNDS = 7

interface Statement {
  run(...params: unknown[]): unknown
  all(...params: unknown[]): unknown[]
  raw?(): unknown
  setReturnArrays?(enabled: boolean): void
}
interface Db {
  prepare(sql: string): Statement
  exec(sql: string): unknown
  close(): unknown
}

const from = createRequire(process.argv[2] === undefined ? import.meta.url : join(process.argv[2], 'package.json'))
const open: Record<string, (file: string) => Db> = {
  'better-sqlite3': (file) => new (from('better-sqlite3') as new (file: string) => Db)(file),
  'node:sqlite': (file) => new (from('node:sqlite') as { DatabaseSync: new (file: string) => Db }).DatabaseSync(file),
  libsql: (file) => new (from('libsql') as new (file: string) => Db)(file),
}

interface Contender {
  readonly insert: () => void
  readonly claim: () => void
  readonly settle: () => void
  readonly figures: Record<'insert' | 'claim' | 'settle', number[]>
}

const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
const contenders = new Map<string, Contender>()
for (const [name, make] of Object.entries(open)) {
  try {
    contenders.set(name, contender(make(join(dir, `${name.replace(':', '-')}.db`))))
  } catch (error) {
    console.log(`${name}: not here (${String(error).split('\n')[0]})`)
  }
}

function contender(db: Db): Contender {
  db.exec('pragma journal_mode = wal; pragma synchronous = normal')
  db.exec(`create table q (seq integer primary key, id text not null unique, input text not null, state int not null, token text, result text);
           create index ready on q (seq) where state = 0`)
  const insert = db.prepare('insert into q (id, input, state) values (?, ?, 0)')
  const ready = db.prepare('select seq, id, input from q where state = 0 order by seq limit ?')
  if (ready.setReturnArrays !== undefined) ready.setReturnArrays(true)
  else ready.raw?.()
  const lease = db.prepare(
    'update q set state = 1, token = ? where seq in (select seq from q where state = 0 order by seq limit ?)',
  )
  const settle = db.prepare('update q set state = 2, token = null, result = ? where seq = ?')
  let serial = 0
  const taken: unknown[][] = []
  const inTransaction = (run: () => void) => () => {
    db.exec('begin immediate')
    run()
    db.exec('commit')
  }
  return {
    insert: inTransaction(() => {
      for (let i = 0; i < BATCH; i += 1) insert.run(`0190${(serial++).toString(16).padStart(28, '0')}`, 'x'.repeat(100))
    }),
    claim: inTransaction(() => {
      taken.push(ready.all(BATCH))
      lease.run('token', BATCH)
    }),
    settle: inTransaction(() => {
      for (const row of taken.shift()!) settle.run('1', (row as unknown[])[0])
    }),
    figures: { insert: [], claim: [], settle: [] },
  }
}

for (let round = -1; round < ROUNDS; round += 1)
  for (const verb of ['insert', 'claim', 'settle'] as const)
    for (const one of contenders.values()) {
      const { user, system } = process.cpuUsage()
      for (let i = 0; i < BATCHES; i += 1) one[verb]()
      const spent = process.cpuUsage()
      if (round >= 0) one.figures[verb].push((spent.user + spent.system - user - system) / (BATCH * BATCHES))
    }

const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!
console.log(
  `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}: µs of processor time per row, ` +
    `batches of ${BATCH}, medians of ${ROUNDS} alternating rounds`,
)
for (const [name, { figures }] of contenders)
  console.log(
    `  ${name.padEnd(16)}${Object.entries(figures)
      .map(
        ([verb, list]) =>
          `${verb} ${median(list).toFixed(2)} (${Math.min(...list).toFixed(1)} to ${Math.max(...list).toFixed(1)})`,
      )
      .join('   ')}`,
  )
rmSync(dir, { recursive: true })
