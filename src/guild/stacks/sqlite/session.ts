import { doublingDelay } from '../../../core/retry/backoff.js'
import type { Clock, Random } from '../../../core/time/clock.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { Ms } from '../../../core/time/time.js'
import type { SqliteDatabase, SqliteStatement, SqliteValue } from '../../../drivers/sqlite/database.js'
import { isBusy, SqliteBusyError } from '../../../drivers/sqlite/errors.js'

/** The longest pause between two tries. */
const MAX_PAUSE_MS: Ms = 20
/** Only a program that hangs holds the write lock for so long. */
const TIMEOUT_MS: Ms = 30_000
/** Statements kept ready. Queries come in as many shapes as programs ask. */
const MAX_STATEMENTS = 400

/** One connection with the statements that it has prepared. */
export class Session {
  readonly db: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()

  constructor(db: SqliteDatabase) {
    this.db = db
  }

  run(sql: string, ...values: readonly SqliteValue[]): number {
    return this.#prepared(sql).run(...values)
  }

  get<R extends readonly SqliteValue[]>(sql: string, ...values: readonly SqliteValue[]): R | undefined {
    // Rows are what the statement says they are: SQL is not checked by the compiler.
    return this.#prepared(sql).get(...values) as R | undefined
  }

  all<R extends readonly SqliteValue[]>(sql: string, ...values: readonly SqliteValue[]): R[] {
    return this.#prepared(sql).all(...values) as unknown as R[]
  }

  #prepared(sql: string): SqliteStatement {
    const known = this.#statements.get(sql)
    if (known !== undefined) {
      // Used again, so it is the youngest.
      this.#statements.delete(sql)
      this.#statements.set(sql, known)
      return known
    }
    const made = this.db.prepare(sql)
    this.#statements.set(sql, made)
    const [oldest] = this.#statements.keys()
    if (this.#statements.size > MAX_STATEMENTS && oldest !== undefined) this.#statements.delete(oldest)
    return made
  }
}

/** Tries until no other process is in the way. The wait is asynchronous: a blocked event loop would miss heartbeats. */
export async function untilFree<T>(file: string, clock: Clock, random: Random, run: () => T): Promise<T> {
  const begun = clock.monotonic()
  let release: (() => void) | undefined
  try {
    for (let tries = 1; ; tries += 1) {
      try {
        return run()
      } catch (error) {
        if (!isBusy(error)) throw error
        const waited = clock.monotonic() - begun
        if (waited >= TIMEOUT_MS) throw new SqliteBusyError(file, waited, error)
        // Our timers let a process end; this one has promised an answer.
        if (clock.isReal === true) release ??= keepAlive()
        await clock.sleep(1 + doublingDelay(tries, { baseMs: 1, maxMs: MAX_PAUSE_MS, jitter: 'full' }, random))
      }
    }
  } finally {
    release?.()
  }
}
