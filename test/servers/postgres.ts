import { execFileSync } from 'node:child_process'
import pg from 'pg'
import { postgresTemplate } from './postgres-template.js'
import { type PrivateServer, startServer } from './private-server.js'
import { programPath } from './program.js'
import { ANSWER_MS } from './wait.js'

export interface PostgresServerOptions {
  /** Settings of postgresql.conf: `{ fsync: 'off' }`. Default: PostgreSQL's own, so commits are durable. */
  readonly settings?: Readonly<Record<string, string | number>>
}

/** A PostgreSQL server whose only user `postgres` needs no password, on the loopback address. */
export function startPostgres(options: PostgresServerOptions = {}): Promise<PrivateServer> {
  const [file, initdb] = [programPath('postgres'), programPath('initdb')]
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? (userNamed('postgres') ?? userNamed('nobody')) : undefined
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // In the data directory, where the janitor removes it, instead of /dev/shm, where a killed server leaves it.
    dynamic_shared_memory_type: 'mmap',
    ...options.settings,
  }
  return startServer({
    kind: 'postgres',
    ...(user === undefined ? {} : { user }),
    // "Fast" shutdown: sessions are ended, the rest is orderly. SIGTERM would wait for every client to leave.
    endBy: 'SIGINT',
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    prepare(dataDir) {
      execFileSync('cp', ['-a', `${postgresTemplate(file, initdb, user)}/.`, dataDir])
    },
    command: (port, dataDir) => ({
      file,
      args: ['-D', dataDir, '-p', String(port), ...Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
    }),
    async ping(port, dataDir) {
      const rows = await postgresQuery(port, "select 1 as one, current_setting('data_directory') as dir")
      return rows[0]?.['one'] === 1 && rows[0]['dir'] === dataDir
    },
    flush: emptyAll,
  })
}

/** One statement on a separate connection. Rejects when no connection or no answer comes. */
export async function postgresQuery(port: number, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({
    connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  })
  // A connection that breaks later must not end the process; the query reports it.
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(sql)).rows
  } finally {
    // A frozen server never answers the goodbye.
    void client.end().catch(() => {})
    ;(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
  }
}

/** Drops every schema and every database but our own, in one go each. Roles stay. */
async function emptyAll(port: number): Promise<void> {
  const others = await postgresQuery(
    port,
    "select datname from pg_database where datname not in ('postgres', 'template0', 'template1')",
  )
  const quoted = (name: unknown) => `"${String(name).replaceAll('"', '""')}"`
  for (const { datname } of others) await postgresQuery(port, `drop database ${quoted(datname)} with (force)`)
  const schemas = await postgresQuery(
    port,
    "select nspname from pg_namespace where nspname <> 'information_schema' and nspname not like 'pg\\_%'",
  )
  const drops = schemas.map(({ nspname }) => `drop schema ${quoted(nspname)} cascade;`)
  // A session that still holds a lock makes this fail after five seconds instead of hanging the test.
  await postgresQuery(port, `set lock_timeout = '5s'; ${drops.join(' ')} create schema public;`)
}

function userNamed(name: string): { readonly uid: number; readonly gid: number } | undefined {
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    return undefined
  }
}
