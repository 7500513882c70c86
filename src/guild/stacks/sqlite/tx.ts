import type { BackendTx, Stored } from '../backend.js'
import { type BookRef, bookKey } from '../documents/names.js'
import { type Doc, parsed } from '../documents/value.js'
import type { ChangeEvent } from '../watch/events.js'
import type { SqliteCatalogue } from './catalogue.js'
import { SqliteReads } from './reads.js'
import type { Session } from './session.js'

export interface SqliteTxOptions {
  readonly session: Session
  readonly catalogue: SqliteCatalogue
  readonly prefix: string
  /** Hands the connection on. */
  readonly release: () => void
  /** Called when events were committed. */
  readonly appended: () => void
}

/** A transaction that was begun on the connection that it has for itself until it ends. */
export class SqliteTx extends SqliteReads implements BackendTx {
  readonly #options: SqliteTxOptions
  #hasEvents = false
  #isOver = false

  constructor(options: SqliteTxOptions) {
    super(async (run) => run(options.session), options.catalogue)
    this.#options = options
  }

  lock(ref: BookRef, id: string): Promise<Stored | null> {
    // Nothing else is written until this transaction ends.
    return this.get(ref, id)
  }

  async put(ref: BookRef, doc: Doc, rev: string, locked?: Stored | null): Promise<Doc | null> {
    const { session, catalogue } = this.#options
    const { table, insert } = catalogue.need(session, ref)
    // Each way down a tree of a large store leads over pages that no core has at hand: go as rarely as can be.
    const before = locked === undefined ? this.#doc(table, doc.id) : (locked?.doc ?? null)
    const text = JSON.stringify(doc)
    if (before === null) session.run(insert, doc.id, rev, text)
    // It names no column of an index, so SQLite does not touch the indexes; the trigger of the table sees to keys that changed.
    else session.run(`update ${table} set rev = ?, doc = ? where id = ?`, rev, text, doc.id)
    return before
  }

  async delete(ref: BookRef, id: string): Promise<Doc | null> {
    const { session, catalogue } = this.#options
    const { table } = catalogue.need(session, ref)
    const [before] = session.get<[string]>(`delete from ${table} where id = ? returning doc`, id) ?? []
    return before === undefined ? null : parsed(before)
  }

  async append(events: readonly ChangeEvent<Doc>[], hops: number): Promise<number | null> {
    const { session, prefix } = this.#options
    const books = session.all<[string, string]>(`select distinct owner, book from ${prefix}_watcher`)
    if (books.length === 0) return null
    const watched = new Set(books.map(([ownerId, book]) => bookKey({ ownerId, book })))
    const kept = events.filter((event) => watched.has(bookKey(event)))
    for (const event of kept) {
      const values = [bookKey(event), hops, JSON.stringify(event)]
      session.run(`insert into ${prefix}_outbox (book, hops, event) values (?, ?, ?)`, ...values)
    }
    if (kept.length === 0) return null
    this.#hasEvents = true
    return session.get<[number]>('select last_insert_rowid()')![0]
  }

  async commit(): Promise<void> {
    this.#options.session.db.exec('commit')
    this.#end()
    if (this.#hasEvents) this.#options.appended()
  }

  async rollback(): Promise<void> {
    if (this.#isOver) return
    try {
      // Some errors (a full disk) have rolled back already.
      if (this.#options.session.db.inTransaction) this.#options.session.db.exec('rollback')
    } finally {
      this.#end()
    }
  }

  #doc(table: string, id: string): Doc | null {
    const [text] = this.#options.session.get<[string]>(`select doc from ${table} where id = ?`, id) ?? []
    return text === undefined ? null : parsed(text)
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.release()
  }
}
