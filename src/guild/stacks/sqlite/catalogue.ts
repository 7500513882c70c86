import { type BookRef, bookKey, type FieldPath, type IndexFields, indexKey } from '../documents/names.js'
import { UnknownBookError } from '../errors.js'
import { indexColumns, isId, type KeyColumns } from './expression.js'
import { fillSql, insertSql, triggersSql } from './key-columns.js'
import type { Session } from './session.js'

/** How a book is kept. */
export interface BookTable {
  readonly table: string
  readonly columns: KeyColumns
  /** The statement that adds a document: its id, its revision, its text. */
  readonly insert: string
}

/** Knows which table keeps which book. */
export class SqliteCatalogue {
  readonly #prefix: string
  readonly #books = new Map<string, BookTable>()

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** The book, if it was declared here or by another process. */
  find(session: Session, ref: BookRef): BookTable | undefined {
    return this.#books.get(bookKey(ref)) ?? this.refresh(session, ref)
  }

  /**
   * As `find`, but read from the file again. A column that another process has added since is no more than a faster way to the same answer, and
   * triggers fill it, so nothing breaks while it is not known.
   */
  refresh(session: Session, ref: BookRef): BookTable | undefined {
    const id = this.#id(session, ref)
    if (id === undefined) return undefined
    const [table, columns] = [this.#table(id), this.#columns(session, id)]
    const book: BookTable = { table, columns, insert: insertSql(table, columns) }
    // Not yet, while it may still be rolled back.
    if (!session.db.inTransaction) this.#books.set(bookKey(ref), book)
    return book
  }

  /** A book that is to be written. */
  need(session: Session, ref: BookRef): BookTable {
    const book = this.find(session, ref)
    if (book === undefined) throw new UnknownBookError(ref.ownerId, ref.book)
    return book
  }

  /** Whether the book and all these indexes are there. */
  has(session: Session, ref: BookRef, indexes: readonly IndexFields[]): boolean {
    const id = this.#id(session, ref)
    if (id === undefined) return false
    const known = this.#indexes(session, id)
    return indexes.every((fields) => known.get(indexKey(fields))?.isOnColumns === true)
  }

  /** Makes what is missing, inside the caller's write transaction. */
  make(session: Session, ref: BookRef, indexes: readonly IndexFields[]): void {
    const prefix = this.#prefix
    session.run(`insert into ${prefix}_book (owner, name) values (?, ?) on conflict do nothing`, ref.ownerId, ref.book)
    const id = this.#id(session, ref)!
    const table = this.#table(id)
    session.db.exec(
      `create table if not exists ${table} (id text primary key not null, rev text not null, doc text not null) strict`,
    )
    const known = this.#indexes(session, id)
    const missing = indexes.filter((fields) => known.get(indexKey(fields))?.isOnColumns !== true)
    // Before the indexes, which would have to follow while the columns are filled.
    this.#addColumns(session, id, missing.flat())
    const columns = this.#columns(session, id)
    for (const fields of missing) {
      const index = `${prefix}_i${this.#indexId(session, id, fields)}`
      // Version 1 had it over the document.
      session.db.exec(`drop index if exists ${index}`)
      session.db.exec(`create index ${index} on ${table} (${indexColumns(fields, columns)})`)
    }
  }

  #addColumns(session: Session, book: number, paths: readonly FieldPath[]): void {
    const table = this.#table(book)
    const before = this.#columns(session, book)
    const fields = new Set(paths.filter((path) => !isId(path)).map((path) => path.join('.')))
    const added = [...fields].filter((field) => !before.has(field))
    if (added.length === 0) return
    for (const field of added)
      session.run(`insert into ${this.#prefix}_column (book, field) values (?, ?)`, book, field)
    const columns = this.#columns(session, book)
    for (const field of added) session.db.exec(`alter table ${table} add column ${columns.get(field)} any`)
    session.db.exec(fillSql(table, new Map(added.map((field) => [field, columns.get(field)!]))))
    session.db.exec(triggersSql(table, columns))
  }

  /** The number of an index over columns, given now if it has none. */
  #indexId(session: Session, book: number, fields: IndexFields): number {
    const [id] = session.get<[number]>(
      `insert into ${this.#prefix}_index (book, fields, on_columns) values (?, ?, 1)
       on conflict (book, fields) do update set on_columns = 1 returning id`,
      book,
      indexKey(fields),
    )!
    return id
  }

  #table(id: number): string {
    return `${this.#prefix}_b${id}`
  }

  #id(session: Session, ref: BookRef): number | undefined {
    const sql = `select id from ${this.#prefix}_book where owner = ? and name = ?`
    return session.get<[number]>(sql, ref.ownerId, ref.book)?.[0]
  }

  #columns(session: Session, book: number): KeyColumns {
    const sql = `select field, id from ${this.#prefix}_column where book = ? order by id`
    return new Map(session.all<[string, number]>(sql, book).map(([field, id]) => [field, `k${id}`]))
  }

  #indexes(session: Session, book: number): Map<string, { readonly isOnColumns: boolean }> {
    const sql = `select fields, on_columns from ${this.#prefix}_index where book = ?`
    const rows = session.all<[string, number]>(sql, book)
    return new Map(rows.map(([fields, onColumns]) => [fields, { isOnColumns: onColumns === 1 }]))
  }
}
