import { MillraceError } from '../../core/error.js'
import { requireModule } from '../../core/process/own-module.js'
import type { SqliteDatabase, SqliteStatement, SqliteValue } from './database.js'

/** As much of better-sqlite3 as is used, so that no types of it are needed to use ours. */
interface Statement {
  readonly reader: boolean
  raw(): Statement
  safeIntegers(enabled: boolean): Statement
  run(...params: unknown[]): { readonly changes: number }
  get(...params: unknown[]): unknown
  all(...params: unknown[]): unknown[]
}
export interface BetterSqlite3 {
  readonly inTransaction: boolean
  prepare(sql: string): Statement
  exec(sql: string): unknown
  pragma(text: string, options: { readonly simple: true }): unknown
  close(): unknown
}
interface Options {
  readonly timeout: number
  readonly readonly?: boolean
  readonly verbose?: (sql?: unknown) => void
}
/** Bytes: a database in memory that begins as these. */
type Constructor = new (file: string | Buffer, options: Options) => BetterSqlite3

let loaded: Constructor | undefined

/** Loads the library, and throws if it is not there or does not run here. Found once, it is not looked for again. */
export function loadBetterSqlite3(): void {
  if (loaded !== undefined) return
  const { version } = requireModule('better-sqlite3/package.json') as { readonly version: string }
  const [major, node] = [version, process.versions.node].map((text) => Number.parseInt(text, 10))
  // It would end the process with a segmentation fault: nothing could report it then.
  if (major !== undefined && node !== undefined && major >= 13 && node < 22)
    throw new MillraceError('DRIVER_MISSING', `better-sqlite3 ${version} does not run on Node ${process.version}`)
  const found = requireModule('better-sqlite3') as Constructor
  // The native part is only loaded with the first database.
  new found(':memory:', { timeout: 0 }).close()
  loaded = found
}

export function openBetterSqlite3(file: string | Buffer, options: Options): SqliteDatabase {
  if (loaded === undefined) loadBetterSqlite3()
  return overBetterSqlite3(new loaded!(file, options))
}

/** The user's own connection, in our words. */
export function overBetterSqlite3(db: BetterSqlite3): SqliteDatabase {
  return {
    driver: 'better-sqlite3',
    prepare: <P extends readonly unknown[], R>(sql: string): SqliteStatement<P, R> => {
      const statement = db.prepare(sql)
      if (statement.reader) statement.raw()
      // The user's connection may read every integer as a bigint: ours are numbers.
      statement.safeIntegers(false)
      return {
        run: (...params) => statement.run(...params).changes,
        // Rows are what the caller says they are: SQL is not checked by the compiler.
        get: (...params) => statement.get(...params) as R | undefined,
        all: (...params) => statement.all(...params) as R[],
      }
    },
    exec: (sql) => void db.exec(sql),
    pragma: (text) => db.pragma(text, { simple: true }) as SqliteValue | undefined,
    get inTransaction() {
      return db.inTransaction
    },
    close: () => void db.close(),
  }
}

/** Whether this is an open database of better-sqlite3, of whatever copy of it. */
export function isBetterSqlite3(value: unknown): value is BetterSqlite3 {
  const db = value as Partial<BetterSqlite3> | null
  return (
    typeof db === 'object' &&
    db !== null &&
    typeof db.inTransaction === 'boolean' &&
    typeof db.prepare === 'function' &&
    typeof db.pragma === 'function'
  )
}
