import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresBackend } from '../../../src/backends/postgres/index.js'
import { freePort } from '../../servers/free-port.js'
import { until } from '../../servers/wait.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, enqueue, finish, item, times } from '../settlements.js'
import { Schemas } from './schemas.js'

const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(existsSync)

// Where it is installed (apt-get install pgbouncer); otherwise driver.server.test.ts has what a pooler does to statements.
describe.skipIf(PGBOUNCER === undefined)('through a pooler in transaction mode', () => {
  let schemas: Schemas
  let url: string
  let end: () => void = () => undefined

  beforeAll(async () => {
    schemas = await Schemas.start()
    const port = await freePort()
    const dir = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
    const { port: serverPort } = schemas.server
    writeFileSync(join(dir, 'users.txt'), '"postgres" ""\n')
    writeFileSync(
      join(dir, 'pgbouncer.ini'),
      `[databases]
postgres = host=127.0.0.1 port=${serverPort} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(dir, 'users.txt')}
pool_mode = transaction
default_pool_size = 2
logfile = ${join(dir, 'log')}
`,
    )
    // It refuses to run as root.
    const user =
      process.getuid?.() === 0 ? Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' })) : undefined
    chmodSync(dir, 0o777)
    const pooler = spawn(PGBOUNCER!, [join(dir, 'pgbouncer.ini')], {
      stdio: 'ignore',
      ...(user === undefined ? {} : { uid: user }),
    })
    end = () => {
      pooler.kill('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    }
    url = `postgres://postgres@127.0.0.1:${port}/postgres`
    await until(
      () => 'the pooler does not answer',
      10_000,
      async () => {
        const client = new pg.Client(url)
        client.on('error', () => undefined)
        try {
          await client.connect()
          await client.query('select 1')
          return true
        } catch {
          return false
        } finally {
          await client.end().catch(() => undefined)
        }
      },
    )
  })
  afterAll(async () => {
    end()
    await schemas?.stop()
  })

  it('everything works; that notifications do not arrive is reported once', async () => {
    const errors: unknown[] = []
    const backend = postgresBackend({ connectionString: url, schema: 'pooled', onError: (e) => void errors.push(e) })
    const ledger = ledgerOn(backend)
    const leave = ledger.onReady(() => undefined)
    // Many at the same time, so that statements meet connections that do not know them.
    await Promise.all(times(20, (i) => ledger.commit(times(5, (n) => enqueue(item(`i${i}-${n}`))))))
    const claims = await Promise.all(times(10, () => ledger.claim(ask(10))))
    const items = claims.flatMap((reply) => reply.items)
    expect(new Set(items.map(({ lease }) => lease.id)).size).toBe(100)
    const ends = await Promise.all(items.map((claimed) => ledger.commit([finish(claimed)])))
    expect(new Set(ends.map(([result]) => result?.kind))).toEqual(new Set(['applied']))
    // The driver waits five seconds of real time before it says so.
    await until(
      () => 'it never said that it polls',
      15_000,
      async () => errors.length > 0,
    )
    expect(errors).toEqual([expect.objectContaining({ code: 'LISTEN_UNAVAILABLE' })])
    leave()
    await backend.close()
  })

  it('notifications arrive with a separate address', async () => {
    const backend = postgresBackend({ connectionString: url, listenConnectionString: schemas.url, schema: 'pooled' })
    const ledger = ledgerOn(backend)
    const received: string[] = []
    ledger.onReady((queue) => void received.push(queue))
    await ledger.commit([enqueue(item('one more'))])
    await until(
      () => 'no notification arrived',
      5_000,
      async () => received.includes('default'),
    )
    await backend.close()
  })
})
