import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { Clock, Random } from '../../../src/core/clock.js'
import type { ClaimAsk, ClaimReply, ItemView } from '../../../src/ports/ledger.js'
import type { CommitResult, GroupValue, Settlement } from '../../../src/ports/settlement.js'
import type { Tracer } from '../tracer.js'
import { claimReady } from './claim.js'
import { commitBatch } from './commit.js'
import { prepareStatements, type Statements } from './statements.js'
import { viewOf } from './view.js'

export interface SqliteTracerOptions {
  readonly file: string
  readonly clock: Clock
  readonly random: Random
  /** Hears every statement, for a test that counts them. Slow. */
  readonly onStatement?: (sql: string) => void
}

/** How long SQLite itself may wait for another process's write, with this process's event loop blocked. */
const BUSY_MS = 20
/** After so many tries the caller hears of it: nobody holds the write lock that long but a program that hangs. */
const MAX_TRIES = 200

export class SqliteTracer implements Tracer {
  readonly #db: Database.Database
  readonly #sql: Statements
  readonly #clock: Clock
  readonly #random: Random
  readonly #inTransaction: Database.Transaction<(run: () => unknown) => unknown>
  #begun = 0

  constructor(options: SqliteTracerOptions) {
    this.#clock = options.clock
    this.#random = options.random
    const { onStatement } = options
    const verbose = onStatement && ((sql?: unknown) => onStatement(String(sql)))
    this.#db = new Database(options.file, { timeout: 5_000, ...(verbose && { verbose }) })
    this.#db.pragma('journal_mode = wal')
    this.#db.pragma('synchronous = normal')
    this.#db.pragma('cache_size = -65536')
    this.#db.exec(readFileSync(new URL('schema.sql', import.meta.url), 'utf8'))
    this.#db.pragma(`busy_timeout = ${BUSY_MS}`)
    this.#sql = prepareStatements(this.#db)
    this.#inTransaction = this.#db.transaction((run: () => unknown) => run())
  }

  roundTrips(): number {
    return this.#begun
  }

  async claim(ask: ClaimAsk): Promise<ClaimReply> {
    const token = randomUUID()
    return this.#write((now) => claimReady(this.#sql, ask, token, now))
  }

  async commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    return this.#write((now) => commitBatch(this.#sql, batch, now))
  }

  async read(ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    const now = this.#clock.now()
    return ids.map((id) => {
      const row = this.#sql.view.get(id)
      return row === undefined || Number(row['gone_at'] ?? Infinity) <= now ? undefined : viewOf(row, now)
    })
  }

  async groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]> {
    const now = this.#clock.now()
    return ids.map((id) => {
      const row = this.#sql.group.get(id, now) ?? this.#sql.alone.get(id)
      if (row === undefined) return undefined
      const [open, value, final, version] = row
      return { ...(value === null ? {} : { value }), open, final: final === 1, version }
    })
  }

  async close(): Promise<void> {
    this.#db.close()
  }

  /**
   * Runs in one `BEGIN IMMEDIATE` transaction. While another process writes, it waits asynchronously and tries again: a
   * blocked event loop would miss heartbeats.
   */
  async #write<T>(run: (now: number) => T): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        this.#begun += 1
        return this.#inTransaction.immediate(() => run(this.#clock.now())) as T
      } catch (error) {
        if (!isBusy(error) || tries >= MAX_TRIES) throw error
        await this.#clock.sleep(1 + this.#random() * Math.min(20, 2 ** tries))
      }
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
