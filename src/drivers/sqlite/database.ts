/** What a column can hold. Whole numbers beyond 2^53 are not used. */
export type SqliteValue = string | number | null | Uint8Array

/**
 * A prepared statement. Rows come as arrays, in the order of the columns: objects cost twice as much, and two columns of one
 * name never meet. Parameters are positional.
 */
export interface SqliteStatement<P extends readonly unknown[] = readonly SqliteValue[], R = readonly SqliteValue[]> {
  /** How many rows it changed. */
  run(...params: P): number
  get(...params: P): R | undefined
  all(...params: P): R[]
}

/** An open database, whichever library opened it. Everything is synchronous. */
export interface SqliteDatabase {
  readonly driver: 'better-sqlite3' | 'node:sqlite'
  prepare<P extends readonly unknown[] = readonly SqliteValue[], R = readonly SqliteValue[]>(
    sql: string,
  ): SqliteStatement<P, R>
  /** Runs any number of statements that return nothing. */
  exec(sql: string): void
  /** The first column of the first row that a pragma returns. */
  pragma(text: string): SqliteValue | undefined
  readonly inTransaction: boolean
  close(): void
}

/** Runs in one `BEGIN IMMEDIATE` transaction: everything that `run` wrote, or nothing. Throws immediately if the lock is taken. */
export function inWriteTransaction<T>(db: SqliteDatabase, run: () => T): T {
  return inTransaction(db, 'begin immediate', run)
}

/**
 * Runs several reads on one snapshot. Apart from seeing one moment, they are cheaper: outside of a transaction every statement
 * takes and gives back the lock on the file, which costs more than to find a row.
 */
export function inReadTransaction<T>(db: SqliteDatabase, run: () => T): T {
  return inTransaction(db, 'begin', run)
}

function inTransaction<T>(db: SqliteDatabase, begin: 'begin' | 'begin immediate', run: () => T): T {
  db.exec(begin)
  try {
    const result = run()
    db.exec('commit')
    return result
  } catch (error) {
    // Some errors (a full disk, an interrupt) have rolled back already.
    if (db.inTransaction) db.exec('rollback')
    throw error
  }
}
