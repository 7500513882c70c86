import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { Redis } from 'ioredis'
import pg from 'pg'
import { startPostgres, startRedis } from '../../test/servers/index.js'
import type { Place, PlaceKind } from './contenders/contender.js'

/** Where contenders of one kind work: a private server or a folder, on which each turn gets a place that nothing has used before. */
export interface Ground {
  readonly kind: PlaceKind
  /** Of the server, for its processor time. */
  readonly pid?: number
  /** The server with its version and what it does not leave at its default. */
  readonly about: string
  fresh(): Promise<Place>
  /** What a while would bring by itself: statistics of tables that have just been filled. */
  settle(place: Place): Promise<void>
  /** Gives back the room of what is stored no more, which maintenance would do in time. Nothing may be open there on SQLite. */
  compact(place: Place): Promise<void>
  /** How much is stored there, on disk or in the server's memory. Undefined where it is in the contender's process. */
  bytes(place: Place): Promise<number | undefined>
  drop(place: Place): Promise<void>
  close(): Promise<void>
}

/** Opens the ground of a kind. */
export function openGround(kind: PlaceKind): Promise<Ground> {
  return { memory: openMemory, sqlite: openSqlite, redis: openRedis, postgres: openPostgres }[kind]()
}

const nothing = async () => {}

async function openMemory(): Promise<Ground> {
  const fresh = async (): Promise<Place> => ({ kind: 'memory', address: '' })
  const about = 'Memory of the process'
  const bytes = async () => undefined
  return { kind: 'memory', about, fresh, settle: nothing, compact: nothing, bytes, drop: nothing, close: nothing }
}

async function openSqlite(): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  let files = 0
  const withSuffixes = (file: string) => ['', '-wal', '-shm'].map((suffix) => file + suffix)
  return {
    kind: 'sqlite',
    about: 'SQLite, WAL, synchronous = NORMAL',
    async fresh() {
      files += 1
      return { kind: 'sqlite', address: join(folder, `${files}.db`) }
    },
    settle: nothing,
    async compact({ address }) {
      const db = new Database(address)
      db.exec('vacuum')
      db.close()
    },
    async bytes({ address }) {
      // Not the shared memory beside it, which is an index of the log.
      const stored = [address, `${address}-wal`].filter((file) => existsSync(file))
      return stored.reduce((sum, file) => sum + statSync(file).size, 0)
    },
    async drop({ address }) {
      for (const file of withSuffixes(address)) rmSync(file, { force: true })
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

async function openRedis(): Promise<Ground> {
  const server = await startRedis()
  const admin = new Redis(server.url)
  const info = async (section: string, field: string) =>
    new RegExp(`^${field}:(.+?)\\s*$`, 'm').exec(await admin.info(section))?.[1] ?? ''
  const version = await info('server', 'redis_version')
  return {
    kind: 'redis',
    pid: server.pid!,
    about: `Redis ${version} without persistence`,
    fresh: async () => ({ kind: 'redis', address: server.url }),
    settle: nothing,
    compact: nothing,
    bytes: async () => Number(await info('memory', 'used_memory')),
    drop: () => server.flush(),
    async close() {
      admin.disconnect()
      await server.stop()
    },
  }
}

async function openPostgres(): Promise<Ground> {
  const server = await startPostgres({ settings: { max_connections: 200 } })
  const admin = new pg.Client(server.url)
  await admin.connect()
  const { rows } = await admin.query("select current_setting('server_version') as version")
  let databases = 0
  const addressOf = (name: string) => server.url.replace(/[^/]+$/, name)
  const nameOf = ({ address }: Place) => new URL(address).pathname.slice(1)
  const query = async ({ address }: Place, sql: string) => {
    const client = new pg.Client(address)
    await client.connect()
    await client.query(sql)
    await client.end()
  }
  return {
    kind: 'postgres',
    pid: server.pid!,
    about: `PostgreSQL ${rows[0].version}, synchronous_commit and fsync on`,
    async fresh() {
      databases += 1
      const name = `bench_${databases}`
      await admin.query(`create database ${name}`)
      return { kind: 'postgres', address: addressOf(name) }
    },
    settle: (place) => query(place, 'analyze'),
    compact: (place) => query(place, 'vacuum full'),
    async bytes(place) {
      const { rows } = await admin.query('select pg_database_size($1) as size', [nameOf(place)])
      return Number(rows[0].size)
    },
    async drop(place) {
      await admin.query(`drop database ${nameOf(place)} with (force)`)
    },
    async close() {
      await admin.end()
      await server.stop()
    },
  }
}
