import { MillraceError } from '../../core/error.js'
import type { PostgresDriver } from './driver.js'
import { sqlStateOf } from './errors.js'
import { withSchema } from './sql-text.js'
import type { Queryable } from './statement.js'

/** One step of a schema. A released one stays as it is; later ones only add. */
export interface Migration {
  /** From 1, rising by one. */
  readonly version: number
  /** The lowest version of a program that can work with the schema after this step. */
  readonly minReader: number
  /** What it is for. */
  readonly about: string
  /** Statements, with `{schema}` where the schema stands (see `withSchema`). */
  readonly sql: string
}

export interface MigrateOptions {
  readonly driver: PostgresDriver
  readonly schema: string
  /** What these tables belong to: several parts of the package may share one schema. */
  readonly part: string
  readonly migrations: readonly Migration[]
  /** False: only check, and refuse to work with a schema that is missing or too old. */
  readonly mayMigrate: boolean
}

/** The schema cannot be worked with as it is. */
export class SchemaVersionError extends MillraceError {
  constructor(
    code: 'SCHEMA_TOO_NEW' | 'SCHEMA_TOO_OLD' | 'SCHEMA_MISSING',
    message: string,
    facts: Found & { mine: number },
  ) {
    super(code, message, { facts: { mine: facts.mine, version: facts.version, minReader: facts.minReader } })
  }
}

interface Found {
  readonly version: number
  readonly minReader: number
}

const VERSIONS = '{schema}.millrace_version'
const CREATE_VERSIONS = `create table if not exists ${VERSIONS} (
  part text primary key, version int not null, min_reader int not null, migrated_at timestamptz not null)`

/**
 * Brings a schema to the version of this program, under a lock, so that any number of processes may start at the same time. A schema
 * that is newer stays as it is; this program works with it unless it says that it needs a newer reader.
 */
export async function migrate(options: MigrateOptions): Promise<Found> {
  const { driver, mayMigrate, part } = options
  const mine = latestOf(options.migrations)
  // Most starts find everything in place: those need neither a lock nor the right to create anything.
  const found = await versionOf(driver, options)
  if (found !== undefined && found.version >= mine) return checked(found, options, mine)
  if (!mayMigrate) throw notMigrated(found, options, mine)
  return driver.transaction(async (tx) => {
    await tx.query({
      name: '',
      text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
      values: [`millrace migration of ${options.schema}`],
    })
    const [exists] = await tx.query({
      name: '',
      text: 'select from pg_namespace where nspname = $1',
      values: [options.schema],
    })
    // Asked for first: "if not exists" wants the right to create one even if it is there.
    if (exists === undefined) await run(tx, 'create schema {schema}', options)
    await run(tx, CREATE_VERSIONS, options)
    const [row] = await tx.query<[number, number]>(select(options))
    const before = row === undefined ? 0 : row[0]
    if (row !== undefined && before >= mine) return checked({ version: before, minReader: row[1] }, options, mine)
    const steps = options.migrations.filter(({ version }) => version > before)
    for (const { sql } of steps) await run(tx, sql, options)
    const minReader = Math.max(row === undefined ? 0 : row[1], ...steps.map((step) => step.minReader))
    await tx.query({
      name: '',
      text: withSchema(
        `insert into ${VERSIONS} values ($1, $2, $3, now())
         on conflict (part) do update set version = excluded.version, min_reader = excluded.min_reader, migrated_at = now()`,
        options.schema,
      ),
      values: [part, mine, minReader],
    })
    return { version: mine, minReader }
  })
}

function latestOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0
}

async function run(tx: Queryable, sql: string, { schema }: MigrateOptions): Promise<void> {
  await tx.query({ name: '', text: withSchema(sql, schema) })
}

function select({ schema, part }: MigrateOptions) {
  const text = withSchema(`select version, min_reader from ${VERSIONS} where part = $1`, schema)
  return { name: '', text, values: [part] }
}

async function versionOf(driver: PostgresDriver, options: MigrateOptions): Promise<Found | undefined> {
  try {
    const [row] = await driver.query<[number, number]>(select(options))
    return row === undefined ? undefined : { version: row[0], minReader: row[1] }
  } catch (error) {
    // No such table, no such schema.
    if (['42P01', '3F000'].includes(sqlStateOf(error) ?? '')) return undefined
    throw error
  }
}

function checked(found: Found, { schema, part }: MigrateOptions, mine: number): Found {
  if (found.minReader <= mine) return found
  throw new SchemaVersionError(
    'SCHEMA_TOO_NEW',
    `The schema ${JSON.stringify(schema)} has version ${found.version} of "${part}" and can be read by version ` +
      `${found.minReader} or later; this program has version ${mine}. Update the package in this process.`,
    { ...found, mine },
  )
}

function notMigrated(found: Found | undefined, { schema, part }: MigrateOptions, mine: number): SchemaVersionError {
  const facts = { version: found?.version ?? 0, minReader: found?.minReader ?? 0, mine }
  const next = 'Migrate it first (npx millrace migrate, or leave out migrate: false).'
  return found === undefined
    ? new SchemaVersionError(
        'SCHEMA_MISSING',
        `The schema ${JSON.stringify(schema)} has no tables of "${part}", and migrate is false. ${next}`,
        facts,
      )
    : new SchemaVersionError(
        'SCHEMA_TOO_OLD',
        `The schema ${JSON.stringify(schema)} has version ${found.version} of "${part}"; this program needs ${mine}, and ` +
          `migrate is false. ${next}`,
        facts,
      )
}
