import { requireModule } from '../../core/process/own-module.js'
import type { SqliteDatabase, SqliteStatement, SqliteValue } from './database.js'

/** As much of Node's own module as is used: the types of Node 20 do not know it. */
interface Statement {
  run(...params: unknown[]): { readonly changes: number | bigint }
  get(...params: unknown[]): unknown
  all(...params: unknown[]): unknown[]
  /** Since 22.16 and 24. */
  setReturnArrays?(enabled: boolean): void
  setReadBigInts(enabled: boolean): void
}
export interface NodeSqlite {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
  /** Since 22.16 and 24. */
  readonly isTransaction?: boolean
}
type Constructor = new (file: string, options?: { readonly timeout?: number }) => NodeSqlite

let loaded: Constructor | undefined

/** Loads Node's own SQLite, and throws where there is none. */
export function loadNodeSqlite(): void {
  loaded ??= (requireModule('node:sqlite') as { readonly DatabaseSync: Constructor }).DatabaseSync
}

export function openNodeSqlite(file: string): SqliteDatabase {
  loadNodeSqlite()
  return overNodeSqlite(new loaded!(file))
}

/** The user's own connection, in our words. */
export function overNodeSqlite(db: NodeSqlite): SqliteDatabase {
  let isBegun = false
  const prepare = <P extends readonly unknown[], R>(sql: string): SqliteStatement<P, R> => {
    const statement = db.prepare(sql)
    const isArrays = statement.setReturnArrays !== undefined
    statement.setReturnArrays?.(true)
    // The user's connection may read every integer as a bigint: ours are numbers.
    statement.setReadBigInts(false)
    // Before it could return arrays, the columns of an object keep their order; ours never share a name.
    const row = (found: unknown): unknown => (isArrays || found === undefined ? found : Object.values(found as object))
    return {
      run: (...params) => Number(statement.run(...params).changes),
      get: (...params) => row(statement.get(...params)) as R | undefined,
      all: (...params) => (isArrays ? statement.all(...params) : statement.all(...params).map(row)) as R[],
    }
  }
  return {
    driver: 'node:sqlite',
    prepare,
    exec(sql) {
      db.exec(sql)
      // Only for versions that do not say: what we begin and end ourselves.
      if (/^begin\b/i.test(sql)) isBegun = true
      else if (/^(?:commit|rollback)\b/i.test(sql)) isBegun = false
    },
    pragma: (text) => prepare<[], readonly SqliteValue[]>(`pragma ${text}`).get()?.[0],
    get inTransaction() {
      return db.isTransaction ?? isBegun
    },
    close: () => db.close(),
  }
}

/** Whether this is an open database of Node's own module. */
export function isNodeSqlite(value: unknown): value is NodeSqlite {
  const db = value as (Partial<NodeSqlite> & { readonly pragma?: unknown }) | null
  return (
    typeof db === 'object' &&
    db !== null &&
    typeof db.prepare === 'function' &&
    typeof db.exec === 'function' &&
    db.pragma === undefined &&
    db.constructor?.name === 'DatabaseSync'
  )
}
