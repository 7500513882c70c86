import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock, Random } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { At, Ms } from '../../core/time/time.js'
import { ChangeWatch } from './change-watch.js'
import { inReadTransaction, inWriteTransaction, type SqliteDatabase } from './database.js'
import { isBusy, isReadOnly, SqliteBusyError, SqliteClosedError, SqliteReadOnlyError } from './errors.js'
import { openSqlite } from './open.js'
import { migrate, type SchemaPlan } from './schema.js'

export interface SqliteConnectionOptions<S> {
  readonly file: string
  readonly clock: Clock
  readonly random?: Random
  readonly synchronous?: 'normal' | 'full'
  readonly schema: SchemaPlan
  /** False: the tables have to be there. Default true. */
  readonly migrate?: boolean
  /** Prepares every statement, once the tables are there. */
  readonly statements: (db: SqliteDatabase) => S
  readonly driver?: 'better-sqlite3' | 'node:sqlite'
  readonly onStatement?: (sql: string) => void
}

/** What a job may use: its statements and the one time of its transaction. */
type Job<S, T> = (sql: S, now: At) => T

interface Waiting<S> {
  readonly run: Job<S, unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Opened<S> {
  readonly db: SqliteDatabase
  readonly sql: S
  readonly version: () => number
}

/** SQLite itself never waits for another process's write: it would wait with this process's event loop blocked. */
const BUSY_MS: Ms = 0
/** Pauses between two tries. */
const RETRY_PAUSE = { baseMs: 1, maxMs: 20, jitter: 'full' } as const
/** Only a program that hangs holds the write lock for so long. */
const PATIENCE_MS: Ms = 30_000

/**
 * One connection to one file. Everything that is written in one turn of the event loop is one transaction: the jobs are
 * gathered until no promise has anything left to do, and then run together.
 *
 * A job is called again if its transaction fails, so it must do nothing but read and write the database. While another
 * process writes, the wait is asynchronous: a blocked event loop would miss heartbeats.
 */
export class SqliteConnection<S> {
  readonly #options: SqliteConnectionOptions<S>
  readonly #random: Random
  #opened: Opened<S> | undefined
  #opening: Promise<Opened<S>> | undefined
  #waiting: Waiting<S>[] = []
  #isArmed = false
  #flushing: Promise<void> | undefined
  #isClosed = false
  #transactions = 0
  #watch: ChangeWatch | undefined
  readonly #listeners = new Set<{ readonly changed: () => void }>()

  constructor(options: SqliteConnectionOptions<S>) {
    this.#options = options
    this.#random = options.random ?? Math.random
  }

  /** How many write transactions have been begun. */
  get transactions(): number {
    return this.#transactions
  }

  get file(): string {
    return this.#options.file
  }

  /** Runs with the other writes of this turn, all of them in one transaction. Rejects if it was not written. */
  write<T>(run: Job<S, T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new SqliteClosedError(this.file))
    return new Promise<T>((resolve, reject) => {
      // One list for jobs of every result; each resolves with its own.
      this.#waiting.push({ run, resolve: resolve as (value: unknown) => void, reject })
      this.#arm()
    })
  }

  /** Reads what has been written, what this process has asked for before included. */
  async read<T>(run: Job<S, T>): Promise<T> {
    if (this.#waiting.length > 0 || this.#flushing !== undefined) return this.write(run)
    if (this.#isClosed) throw new SqliteClosedError(this.file)
    const { sql } = this.#opened ?? (await this.#open())
    return this.#tryUntilFree(() => run(sql, this.#options.clock.now()))
  }

  /** Like `read`, for what takes more than one statement: all of them see the same moment. */
  async readTogether<T>(run: Job<S, T>): Promise<T> {
    if (this.#waiting.length > 0 || this.#flushing !== undefined) return this.write(run)
    if (this.#isClosed) throw new SqliteClosedError(this.file)
    const { db, sql } = this.#opened ?? (await this.#open())
    return this.#tryUntilFree(() => inReadTransaction(db, () => run(sql, this.#options.clock.now())))
  }

  /** Calls back when another connection, of this process or another, has changed the file. */
  onChange(changed: () => void): () => void {
    const one = { changed }
    this.#listeners.add(one)
    if (this.#opened !== undefined) this.#beginWatch(this.#opened)
    // Callers that use the connection get the reason why it cannot be opened; a listener needs none.
    else if (!this.#isClosed) this.#open().catch(() => undefined)
    return () => {
      this.#listeners.delete(one)
      if (this.#listeners.size > 0) return
      this.#watch?.close()
      this.#watch = undefined
    }
  }

  /** Writes what is waiting, then lets go of the file. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#waiting.length > 0 || this.#flushing !== undefined) {
      this.#flushing ??= this.#flush()
      await this.#flushing
    }
    this.#watch?.close()
    this.#watch = undefined
    this.#listeners.clear()
    // Its caller has been rejected if the open failed.
    const opened = this.#opened ?? (await this.#opening?.catch(() => undefined))
    this.#opened = undefined
    this.#opening = undefined
    opened?.db.close()
  }

  #arm(): void {
    if (this.#isArmed || this.#flushing !== undefined) return
    this.#isArmed = true
    // A tick that is set by a microtask comes when no microtask is left: whatever this turn still asks for travels along.
    queueMicrotask(() => process.nextTick(this.#start))
  }

  readonly #start = (): void => {
    this.#isArmed = false
    if (this.#flushing !== undefined || this.#waiting.length === 0) return
    // The common case, with no other writer: no promise, no pause.
    if (this.#opened !== undefined && this.#runWaiting(this.#opened) === undefined) return
    this.#flushing = this.#flush()
  }

  async #flush(): Promise<void> {
    // Our timers let a process end; this one has promised to write.
    const release = this.#options.clock.isReal === true ? keepAlive() : undefined
    try {
      const opened = this.#opened ?? (await this.#open())
      await this.#tryUntilFree(() => {
        const busy = this.#runWaiting(opened)
        if (busy !== undefined) throw busy
      })
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error)
    } finally {
      this.#flushing = undefined
      release?.()
      if (this.#waiting.length > 0) this.#arm()
    }
  }

  /** Runs everything that waits. Returns the error if another connection is writing: what was not run waits on. */
  #runWaiting(opened: Opened<S>): unknown {
    const jobs = this.#waiting
    this.#waiting = []
    const failed = this.#runTogether(opened, jobs)
    if (failed === undefined) return undefined
    let left = jobs
    // One bad job must not take its neighbours down: each runs by itself then.
    let error: unknown = failed
    while (!isBusy(error)) {
      const [job, ...rest] = left
      if (job === undefined) return undefined
      error = jobs.length === 1 ? failed : this.#runTogether(opened, [job])
      if (isBusy(error)) break
      if (error !== undefined) job.reject(error)
      left = rest
    }
    this.#waiting = [...left, ...this.#waiting]
    return error
  }

  /** All of them in one transaction, or none. Returns what went wrong. */
  #runTogether({ db, sql }: Opened<S>, jobs: readonly Waiting<S>[]): unknown {
    let results: unknown[]
    try {
      this.#transactions += 1
      results = inWriteTransaction(db, () => {
        const now = this.#options.clock.now()
        return jobs.map(({ run }) => run(sql, now))
      })
    } catch (error) {
      // A job may throw anything, but not nothing.
      return this.#explained(error) ?? new Error('A job threw nothing at all.')
    }
    for (const [i, { resolve }] of jobs.entries()) resolve(results[i])
    return undefined
  }

  #open(): Promise<Opened<S>> {
    this.#opening ??= this.#tryUntilFree(() => this.#openNow()).then(
      (opened) => {
        this.#opened = opened
        if (this.#listeners.size > 0) this.#beginWatch(opened)
        return opened
      },
      (error: unknown) => {
        // The next call tries again: the directory may be there by then.
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  #openNow(): Opened<S> {
    const { file, synchronous = 'normal', schema, statements, driver, onStatement } = this.#options
    const db = openSqlite(file, {
      busyMs: BUSY_MS,
      synchronous,
      ...(driver && { driver }),
      ...(onStatement && { onStatement }),
    })
    try {
      migrate(db, schema, this.#options.migrate ?? true)
      const version = db.prepare<[], readonly [number]>('pragma data_version')
      return { db, sql: statements(db), version: () => version.get()?.[0] ?? 0 }
    } catch (error) {
      db.close()
      throw this.#explained(error)
    }
  }

  #explained(error: unknown): unknown {
    return isReadOnly(error) ? new SqliteReadOnlyError(this.file, error) : error
  }

  async #tryUntilFree<T>(run: () => T): Promise<T> {
    const { clock } = this.#options
    const begun = clock.monotonic()
    for (let tries = 1; ; tries += 1) {
      try {
        return run()
      } catch (error) {
        if (!isBusy(error)) throw error
        const waited = clock.monotonic() - begun
        if (waited >= PATIENCE_MS) throw new SqliteBusyError(this.file, waited, error)
        await clock.sleep(1 + doublingDelay(tries, RETRY_PAUSE, this.#random))
      }
    }
  }

  #beginWatch({ version }: Opened<S>): void {
    if (this.#isClosed || this.#watch !== undefined) return
    this.#watch = new ChangeWatch(this.file, this.#options.clock, version, () => {
      for (const { changed } of [...this.#listeners]) changed()
    })
  }
}
