import { MillraceError } from '../../core/error.js'
import { errorMessage } from '../../core/text/error-text.js'
import { inWriteTransaction, type SqliteDatabase } from './database.js'

/** One step of a schema: from the version before it to `version`. Additive, and never changed once released. */
export interface SchemaStep {
  readonly version: number
  /** The lowest version of the code that can still work with a file of this version. */
  readonly minReader: number
  readonly sql: string
}

/** The tables of one component. Several components share a file; each has its own version. */
export interface SchemaPlan {
  /** The name of the component, its prefix included. */
  readonly component: string
  readonly steps: readonly SchemaStep[]
}

const TABLE = 'millrace_schema'

/** The file was written by a newer version that this one does not understand. */
class SchemaTooNewError extends MillraceError {
  constructor(component: string, version: number, minReader: number, own: number) {
    super(
      'SCHEMA_TOO_NEW',
      `The tables "${component}" are at version ${version}, which needs code of version ${minReader} or newer; this is ` +
        `version ${own}. Upgrade millrace in this process before it starts again.`,
      { facts: { component, version, minReader, own } },
    )
  }
}

/** Tables are missing or old, and the options forbid this process to make them. */
class SchemaMissingError extends MillraceError {
  constructor(component: string, version: number, own: number) {
    super(
      'SCHEMA_MISSING',
      `The tables "${component}" are at version ${version} and version ${own} is needed, but \`migrate\` is false. Open the ` +
        'file once without it, in a process that may change the schema.',
      { facts: { component, version, own } },
    )
  }
}

/** Other tables in the file have the names that ours would have. */
class SchemaConflictError extends MillraceError {
  constructor(component: string, cause: unknown) {
    super(
      'SCHEMA_CONFLICT',
      `The tables "${component}" cannot be made: ${errorMessage(cause)}. SQLite does not distinguish upper from lower case in names, so a system ` +
        'whose prefix differs only in case has the same tables, and so may one of your own programs. Write the prefix exactly as the ' +
        'other system does, or choose another one.',
      { cause, facts: { component } },
    )
  }
}

/**
 * Brings the tables of a component to the newest version, under the write lock. Every process may call it at any time: who
 * comes second finds the work done. Throws `SQLITE_BUSY` while another process writes: try again.
 */
export function migrate(db: SqliteDatabase, plan: SchemaPlan, isAllowed: boolean): void {
  const own = plan.steps.at(-1)?.version ?? 0
  if (check(plan, own, read(db, plan.component)) >= own) return
  if (!isAllowed) throw new SchemaMissingError(plan.component, read(db, plan.component)?.[0] ?? 0, own)
  inWriteTransaction(db, () => {
    db.exec(
      `create table if not exists ${TABLE} (component text primary key, version integer not null, min_reader integer not null) strict`,
    )
    const at = check(plan, own, read(db, plan.component))
    for (const { version, minReader, sql } of plan.steps) {
      if (version <= at) continue
      make(db, plan.component, sql)
      db.prepare<[string, number, number]>(
        `insert into ${TABLE} (component, version, min_reader) values (?, ?, ?)
         on conflict (component) do update set version = excluded.version, min_reader = excluded.min_reader`,
      ).run(plan.component, version, minReader)
    }
  })
}

function make(db: SqliteDatabase, component: string, sql: string): void {
  try {
    db.exec(sql)
  } catch (error) {
    throw /already exists|already another/.test(errorMessage(error)) ? new SchemaConflictError(component, error) : error
  }
}

type Found = readonly [version: number, minReader: number]

function read(db: SqliteDatabase, component: string): Found | undefined {
  const isThere = db.prepare<[string]>("select 1 from sqlite_schema where type = 'table' and name = ?").get(TABLE)
  if (isThere === undefined) return undefined
  return db.prepare<[string], Found>(`select version, min_reader from ${TABLE} where component = ?`).get(component)
}

/** The version that is there. */
function check(plan: SchemaPlan, own: number, found: Found | undefined): number {
  const [version, minReader] = found ?? [0, 0]
  if (minReader > own) throw new SchemaTooNewError(plan.component, version, minReader, own)
  return version
}
