import { MIGRATIONS } from '../../backends/postgres/migrations.js'
import type { Clock } from '../../core/time/clock.js'
import {
  checkIdentifier,
  type Migration,
  PostgresDriver,
  sqlStateOf,
  withSchema,
} from '../../drivers/postgres/index.js'
import { stacksMigrations } from '../../guild/stacks/postgres/migrations.js'
import type { Address } from './address.js'
import type { Connected, Danger, ServerFacts, StoragePart } from './connected.js'
import { Closers, opsOn } from './ops-on.js'
import { checkVersions, migrated, partsFor, versionOf } from './storage.js'

type PostgresAddress = Extract<Address, { readonly kind: 'postgres' }>

/** PostgreSQL 14, as the server counts. */
const OLDEST = 140_000
/** The names of the parts in the table of versions. */
const PARTS: readonly (readonly [part: StoragePart['part'], name: string, migrations: readonly Migration[]])[] = [
  ['work', 'ledger', MIGRATIONS],
  ['guild', 'stacks', stacksMigrations],
]

/** Connects to a schema of a database. Creates nothing. */
export function connectPostgres({ url, name, schema: given }: PostgresAddress, clock: Clock): Connected {
  const schema = checkIdentifier('--schema', given ?? 'millrace')
  const closers = new Closers()
  // Background errors do not concern a single query.
  const onError = () => undefined
  const driver = new PostgresDriver({ connectionString: url, maxConnections: 1, prepare: false, clock, onError })
  closers.add(() => driver.close())

  const versions = async (): Promise<StoragePart[]> => {
    const rows = await versionRows(driver, schema)
    return PARTS.map(([part, stored, migrations]) => {
      const row = rows.find(([one]) => one === stored)
      return { part, version: row?.[1] ?? 0, minReader: row?.[2] ?? 0, latest: migrations.at(-1)?.version ?? 0 }
    })
  }

  return {
    kind: 'postgres',
    name,
    async facts(): Promise<ServerFacts> {
      const askedAt = clock.now()
      const begun = clock.monotonic()
      const [row] = await driver.query<[string, string, boolean, number]>({
        name: '',
        text: `select current_setting('server_version'), current_setting('server_version_num'), pg_is_in_recovery(),
               extract(epoch from clock_timestamp())::float8 * 1000`,
      })
      const [version = '', number = '0', isStandby = false, at = askedAt] = row ?? []
      const tookMs = clock.monotonic() - begun
      const dangers = dangersOf(version, Number(number), isStandby)
      return { server: `PostgreSQL ${version}`, at, askedAt, tookMs, storage: await versions(), dangers }
    },
    async ops(needs) {
      // Checked first, because a driver that waits for a connection reports nothing.
      const storage = await versions()
      checkVersions(name, storage, needs)
      const { postgresBackend } = await import('../../backends/postgres/backend.js')
      const backend = postgresBackend({ connectionString: url, schema, migrate: false, maxConnections: 4, onError })
      closers.add(() => backend.close())
      const stacksOn = async () => {
        const { postgresStacks } = await import('../../guild/stacks/postgres/backend.js')
        return postgresStacks({ connectionString: url, schema, migrate: false, maxConnections: 4 })
      }
      return opsOn(backend, clock, needs, closers, { ...partsFor(storage, needs), stacksOn })
    },
    async migrate() {
      const before = await versions()
      const { postgresBackend } = await import('../../backends/postgres/backend.js')
      const backend = postgresBackend({ connectionString: url, schema, onError })
      try {
        await backend.migrate()
      } finally {
        await backend.close()
      }
      if (versionOf(before, 'guild') > 0) {
        const { postgresStacks } = await import('../../guild/stacks/postgres/backend.js')
        const stacks = postgresStacks({ connectionString: url, schema })
        try {
          await stacks.open({ home: '.' })
        } finally {
          await stacks.close()
        }
      }
      return migrated(before, await versions())
    },
    close: () => closers.close(),
  }
}

type VersionRow = [part: string, version: number, minReader: number]

async function versionRows(driver: PostgresDriver, schema: string): Promise<VersionRow[]> {
  const text = withSchema('select part, version, min_reader from {schema}.millrace_version', schema)
  try {
    return await driver.query<VersionRow>({ name: '', text })
  } catch (error) {
    // No such table, no such schema.
    if (['42P01', '3F000'].includes(sqlStateOf(error) ?? '')) return []
    throw error
  }
}

function dangersOf(version: string, number: number, isStandby: boolean): Danger[] {
  const found: Danger[] = []
  if (number < OLDEST)
    found.push({
      code: 'server-too-old',
      text: `The server is PostgreSQL ${version}; Millrace needs 14 or later.`,
      remedy: 'Upgrade the server.',
    })
  if (isStandby)
    found.push({
      code: 'standby',
      text: 'The server is a read-only standby, so it can neither accept nor run work.',
      remedy: 'Use the address of the primary.',
    })
  return found
}
