import { statSync } from 'node:fs'
import { schemaOf } from '../../backends/sqlite/schema.js'
import { prefixOption, tablesOf } from '../../backends/sqlite/tables.js'
import type { Clock } from '../../core/time/clock.js'
import type { SqliteDatabase } from '../../drivers/sqlite/database.js'
import { readHeader } from '../../drivers/sqlite/header.js'
import { openSqlite } from '../../drivers/sqlite/open.js'
import { migrate, type SchemaPlan } from '../../drivers/sqlite/schema.js'
import { stacksSchema } from '../../guild/stacks/sqlite/schema.js'
import type { Address } from './address.js'
import type { Connected, ServerFacts, StoragePart } from './connected.js'
import { Closers, opsOn } from './ops-on.js'
import { checkVersions, migrated, NothingThereError, partsFor, versionOf } from './storage.js'

type SqliteAddress = Extract<Address, { readonly kind: 'sqlite' }>

/** How long SQLite itself may wait for a lock while a version is read: nothing else runs in this process then. */
const BUSY_MS = 5_000
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
      const storage = versions()
      checkVersions(name, storage, needs)
      const { sqliteBackend } = await import('../../backends/sqlite/backend.js')
      const backend = sqliteBackend({ file, prefix, migrate: false, clock })
      closers.add(() => backend.close())
      const stacksOn = async () => {
        const { sqliteStacks } = await import('../../guild/stacks/sqlite/backend.js')
        return sqliteStacks({ file, migrate: false, clock })
      }
      return opsOn(backend, clock, needs, closers, { ...partsFor(storage, needs), stacksOn })
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
  const { isSqlite, isWal } = readHeader(file)
  // Opening it would change its journal mode for its other users.
  if (found.size > 0 && !isSqlite)
    throw new NothingThereError(file, `${file} is not a SQLite database.`, 'Give the SQLite file of your workers.')
  if (!isWal) throw new NothingThereError(file, `${file} has no Millrace tables.`, next)
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
