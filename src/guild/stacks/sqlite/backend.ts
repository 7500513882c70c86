import { resolve } from 'node:path'
import { MillraceError } from '../../../core/error.js'
import { OptionTypeError } from '../../../core/options.js'
import { callable, clock, flag, integer, oneOf, readOptions, text, unchecked } from '../../../core/read-options.js'
import { type Clock, type Random, systemClock } from '../../../core/time/clock.js'
import { ChangeWatch } from '../../../drivers/sqlite/change-watch.js'
import { inWriteTransaction } from '../../../drivers/sqlite/database.js'
import { openSqlite } from '../../../drivers/sqlite/open.js'
import { migrate } from '../../../drivers/sqlite/schema.js'
import type { BackendReads, BackendTx, Outbox, StacksBackend, Writers } from '../backend.js'
import type { BookRef, IndexFields } from '../documents/names.js'
import { StacksClosedError } from '../errors.js'
import { FifoLock } from '../transaction/fifo-lock.js'
import { SqliteCatalogue } from './catalogue.js'
import { sqliteOutbox, sqliteWriters } from './outbox.js'
import { type OnSession, SqliteReads } from './reads.js'
import { stacksSchema } from './schema.js'
import { Session, untilFree } from './session.js'
import { SqliteTx } from './tx.js'

/** Options of `sqliteStacks`. */
export interface SqliteStacksOptions {
  /** The file; a relative path starts at the guild's directory. Its directory is made. Default: `stacks.sqlite`. */
  readonly file?: string
  /** Prefix of the table names, for several stores in one file. Default: `stacks`. */
  readonly prefix?: string
  /** `'normal'` (default): a power cut may take the last transactions, never break the file. `'full'`: nothing is lost. */
  readonly synchronous?: 'normal' | 'full'
  /**
   * How much of the file each connection keeps in memory, in MiB. A store has one that writes, one that reads, and one for each
   * read-only transaction at a time (four of these are kept). Default: 8, which holds what leads to the documents of a million;
   * the documents themselves are kept by the operating system. More makes writes slower rather than faster: whenever a page of
   * a tree is divided, SQLite searches all that it keeps.
   */
  readonly cacheMiB?: number
  /** False: the tables have to be there. Default true. */
  readonly migrate?: boolean
  /** Which library. Default: better-sqlite3 where it loads, else Node's own. */
  readonly driver?: 'better-sqlite3' | 'node:sqlite'
  readonly clock?: Clock
  readonly random?: Random
}

const CACHE_MIB = 8
/** More than this is a mistake in the unit. */
const MAX_CACHE_MIB = 65_536
/** How long SQLite itself may wait for a lock, with the event loop blocked. */
const BUSY_MS = 5
/** Snapshots whose connections are kept open for the next ones. */
const IDLE_SNAPSHOTS = 4

/**
 * Documents in an SQLite file, for one machine and any number of processes: one table for each book with the document as
 * JSON, and indexed columns for the fields that were declared. One writer at a time; readers never wait.
 */
export function sqliteStacks(given?: SqliteStacksOptions): StacksBackend {
  return new SqliteBackend(read(given))
}

const read = (given: SqliteStacksOptions | undefined) =>
  readOptions('sqliteStacks', given, {
    file: text('stacks.sqlite'),
    prefix: (path: string, prefix: unknown = 'stacks') => {
      if (typeof prefix === 'string' && /^[a-z][a-z0-9_]{0,31}$/.test(prefix)) return prefix
      throw new OptionTypeError(path, 'a lower-case letter, then letters, digits and _', prefix)
    },
    synchronous: oneOf(['normal', 'full'], 'normal'),
    cacheMiB: integer({ min: 1, max: MAX_CACHE_MIB, default: CACHE_MIB }),
    migrate: flag(true),
    driver: unchecked,
    clock: clock(systemClock),
    random: callable(Math.random),
  })

type Resolved = ReturnType<typeof read>

interface Opened {
  readonly file: string
  readonly writer: Session
  readonly reader: Session
}

class SqliteBackend implements StacksBackend {
  readonly name = 'sqlite'
  readonly isExclusive = true
  readonly reads: BackendReads
  readonly outbox: Outbox
  readonly writers: Writers
  readonly #options: Resolved
  readonly #catalogue: SqliteCatalogue
  /** The writer's connection has one transaction at a time. */
  readonly #lock = new FifoLock()
  readonly #listeners = new Set<{ readonly wake: () => void }>()
  readonly #idle: Session[] = []
  #opened: Opened | undefined
  #watch: ChangeWatch | undefined

  constructor(options: Resolved) {
    const { prefix, clock } = options
    this.#options = options
    this.#catalogue = new SqliteCatalogue(prefix)
    const read: OnSession = (run) => this.#untilFree(() => run(this.#open().reader))
    const write: OnSession = (run) => this.#write(run)
    this.reads = new SqliteReads(read, this.#catalogue)
    this.outbox = sqliteOutbox({ prefix, clock, read, write, onAppend: (wake) => this.#onAppend(wake) })
    this.writers = sqliteWriters(prefix, clock, write)
  }

  async open({ home }: { readonly home: string }): Promise<void> {
    if (this.#opened !== undefined) return
    const { prefix } = this.#options
    if (this.#options.file === ':memory:')
      throw new MillraceError('BAD_OPTION', 'sqliteStacks.file must be a file: use memoryStacks() to keep nothing.')
    const file = resolve(home, this.#options.file)
    const writer = await this.#connect(file)
    try {
      await this.#retried(file, () => migrate(writer.db, stacksSchema(prefix), this.#options.migrate))
      this.#opened = { file, writer, reader: await this.#connect(file) }
    } catch (error) {
      writer.db.close()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#watch?.close()
    this.#listeners.clear()
    const opened = this.#opened
    this.#opened = undefined
    for (const session of this.#idle.splice(0)) session.db.close()
    opened?.reader.db.close()
    opened?.writer.db.close()
  }

  async ensureBook(ref: BookRef, indexes: readonly IndexFields[]): Promise<void> {
    // Most starts find everything in place, and need no lock.
    if (!(await this.#untilFree(() => this.#catalogue.has(this.#open().reader, ref, indexes))))
      await this.#write((session) => this.#catalogue.make(session, ref, indexes))
    // Known from now on, so transactions need not query it.
    await this.#untilFree(() => this.#catalogue.refresh(this.#open().reader, ref))
  }

  async begin({ readOnly }: { readonly readOnly: boolean }): Promise<BackendTx> {
    const { prefix } = this.#options
    const common = { catalogue: this.#catalogue, prefix, appended: () => this.#wake() }
    if (readOnly) {
      const session = await this.#beginSnapshot()
      return new SqliteTx({ ...common, session, release: () => this.#endSnapshot(session) })
    }
    const release = await this.#lock.take()
    try {
      const { writer } = this.#open()
      await this.#untilFree(() => writer.db.exec('begin immediate'))
      return new SqliteTx({ ...common, session: writer, release })
    } catch (error) {
      release()
      throw error
    }
  }

  #open(): Opened {
    if (this.#opened === undefined) throw new StacksClosedError()
    return this.#opened
  }

  #connect(file: string): Promise<Session> {
    const { synchronous, cacheMiB, driver } = this.#options
    const options = { busyMs: BUSY_MS, synchronous, cacheKib: cacheMiB * 1024, ...(driver && { driver }) }
    return this.#retried(file, () => new Session(openSqlite(file, options)))
  }

  #retried<T>(file: string, run: () => T): Promise<T> {
    return untilFree(file, this.#options.clock, this.#options.random, run)
  }

  async #untilFree<T>(run: () => T): Promise<T> {
    return this.#retried(this.#open().file, run)
  }

  async #write<T>(run: (session: Session) => T): Promise<T> {
    const release = await this.#lock.take()
    try {
      const { writer } = this.#open()
      return await this.#untilFree(() => inWriteTransaction(writer.db, () => run(writer)))
    } finally {
      release()
    }
  }

  async #beginSnapshot(): Promise<Session> {
    const session = this.#idle.pop() ?? (await this.#connect(this.#open().file))
    try {
      await this.#untilFree(() => {
        if (!session.db.inTransaction) session.db.exec('begin')
        // The first read fixes what the transaction sees.
        session.get(`select 1 from ${this.#options.prefix}_book limit 1`)
      })
      return session
    } catch (error) {
      session.db.close()
      throw error
    }
  }

  #endSnapshot(session: Session): void {
    if (this.#opened !== undefined && this.#idle.length < IDLE_SNAPSHOTS) this.#idle.push(session)
    else session.db.close()
  }

  #wake(): void {
    for (const { wake } of [...this.#listeners]) wake()
  }

  /** Our own commits wake the listeners; those of other connections change the version of the file. */
  #onAppend(wake: () => void): () => void {
    const one = { wake }
    this.#listeners.add(one)
    if (this.#watch === undefined) {
      const { file, writer } = this.#open()
      const version = (): number => writer.get<[number]>('pragma data_version')?.[0] ?? 0
      this.#watch = new ChangeWatch(file, this.#options.clock, version, () => this.#wake())
    }
    return () => {
      this.#listeners.delete(one)
      if (this.#listeners.size > 0) return
      this.#watch?.close()
      this.#watch = undefined
    }
  }
}
