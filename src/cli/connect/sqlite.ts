import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { schemaOf } from '../../backends/sqlite/schema.js'
import { prefixOption, tablesOf } from '../../backends/sqlite/tables.js'
import type { Clock } from '../../core/time/clock.js'
import type { SqliteDatabase } from '../../drivers/sqlite/database.js'
import { openSqlite } from '../../drivers/sqlite/open.js'
import { migrate, type SchemaPlan } from '../../drivers/sqlite/schema.js'
import { stacksSchema } from '../../guild/stacks/sqlite/schema.js'
import type { Address } from './address.js'
import type { Connected, ServerFacts, StoragePart } from './connected.js'
import { Closers, opsOn } from './ops-on.js'
import { checkVersions, migrated, NothingThereError, versionOf } from './storage.js'

type SqliteAddress = Extract<Address, { readonly kind: 'sqlite' }>

/** How long SQLite itself may wait for a lock while a version is read: nothing else runs in this process then. */
const BUSY_MS = 5_000
/** How much of a file identifies it. */
const HEADER_BYTES = 20
/** The header byte of the journal mode: 2 is a write-ahead log, which Millrace always uses. */
const WRITE_VERSION = 18
const WAL = 2

/** Connects to a file. Creates and changes nothing: a missing or foreign file is an error. */
export function connectSqlite({ file, name, prefix: given }: SqliteAddress, clock: Clock): Connected {
  const prefix = prefixOption('--prefix', given)
  const work = schemaOf(tablesOf(prefix), prefix)
  const guild = stacksSchema('stacks')
  const closers = new Closers()

  const versions = (): StoragePart[] => withFile(file, (db) => [partOf(db, 'work', work), partOf(db, 'guild', guild)])

  return {
    kind: 'sqlite',
    name,
    async facts(): Promise<ServerFacts> {
      checkFile(file)
      const server = withFile(file, (db) => `SQLite ${db.prepare<[], [string]>('select sqlite_version()').get()?.[0]}`)
      return { server, askedAt: clock.now(), tookMs: 0, storage: versions(), dangers: [] }
    },
    async ops(needs) {
      checkFile(file)
      checkVersions(name, versions(), needs)
      const { sqliteBackend } = await import('../../backends/sqlite/backend.js')
      const backend = sqliteBackend({ file, prefix, migrate: false, clock })
      closers.add(() => backend.close())
      return opsOn(backend, clock, needs, closers, async () => {
        const { sqliteStacks } = await import('../../guild/stacks/sqlite/backend.js')
        return sqliteStacks({ file, migrate: false, clock })
      })
    },
    async migrate() {
      const before = statSync(file, { throwIfNoEntry: false }) === undefined ? [] : versions()
      withFile(file, (db) => {
        migrate(db, work, true)
        // The guild creates its tables when it starts; existing ones are migrated here.
        if (versionOf(before, 'guild') > 0) migrate(db, guild, true)
      })
      return migrated(before, versions())
    },
    close: () => closers.close(),
  }
}

function checkFile(file: string): void {
  const next = 'If the address is right, `millrace migrate` creates the tables; a worker does so when it starts.'
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) throw new NothingThereError(file, `There is no file ${file}.`, next)
  if (!found.isFile())
    throw new NothingThereError(file, `${file} is not a file.`, 'Give the SQLite file of your workers.')
  const header = Buffer.alloc(HEADER_BYTES)
  const handle = openSync(file, 'r')
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0)
  } finally {
    closeSync(handle)
  }
  // Opening it would change its journal mode for its other users.
  if (found.size > 0 && !header.toString('latin1').startsWith('SQLite format 3\0'))
    throw new NothingThereError(file, `${file} is not a SQLite database.`, 'Give the SQLite file of your workers.')
  if (header[WRITE_VERSION] !== WAL) throw new NothingThereError(file, `${file} has no Millrace tables.`, next)
}

function withFile<T>(file: string, use: (db: SqliteDatabase) => T): T {
  const db = openSqlite(file, { busyMs: BUSY_MS, synchronous: 'normal' })
  try {
    return use(db)
  } finally {
    db.close()
  }
}

function partOf(db: SqliteDatabase, part: StoragePart['part'], plan: SchemaPlan): StoragePart {
  const latest = plan.steps.at(-1)?.version ?? 0
  const isThere = db.prepare<[]>("select 1 from sqlite_schema where type = 'table' and name = 'millrace_schema'").get()
  const row =
    isThere === undefined
      ? undefined
      : db
          .prepare<[string], [number, number]>('select version, min_reader from millrace_schema where component = ?')
          .get(plan.component)
  return { part, version: row?.[0] ?? 0, minReader: row?.[1] ?? 0, latest }
}
