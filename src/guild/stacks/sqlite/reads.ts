import type { BackendReads, Stored } from '../backend.js'
import type { BookRef } from '../documents/names.js'
import { type Doc, parsed } from '../documents/value.js'
import type { Filter, InternalQuery } from '../query/filter.js'
import type { SqliteCatalogue } from './catalogue.js'
import { filterSql, querySql } from './expression.js'
import type { Session } from './session.js'

/** Runs a read on a connection, and tries again while another process holds the lock. */
export type OnSession = <T>(run: (session: Session) => T) => Promise<T>

/** Reads on some connection: the reader's for single reads, the writer's inside its transaction. */
export class SqliteReads implements BackendReads {
  readonly #on: OnSession
  readonly #catalogue: SqliteCatalogue

  constructor(on: OnSession, catalogue: SqliteCatalogue) {
    this.#on = on
    this.#catalogue = catalogue
  }

  get(ref: BookRef, id: string): Promise<Stored | null> {
    return this.#on((session) => {
      const book = this.#catalogue.find(session, ref)
      if (book === undefined) return null
      // By the primary key.
      const row = session.get<[string, string]>(`select doc, rev from ${book.table} where id = ?`, id)
      return row === undefined ? null : { doc: parsed(row[0]), rev: row[1] }
    })
  }

  find(ref: BookRef, query: InternalQuery): Promise<Doc[]> {
    return this.#on((session) => {
      const book = this.#catalogue.find(session, ref)
      if (book === undefined) return []
      const { text, values } = querySql(query, book.columns)
      return session.all<[string]>(`select doc from ${book.table} ${text}`, ...values).map(([doc]) => parsed(doc))
    })
  }

  count(ref: BookRef, filter: Filter): Promise<number> {
    return this.#on((session) => {
      const book = this.#catalogue.find(session, ref)
      if (book === undefined) return 0
      const { text, values } = filterSql(filter, book.columns)
      return session.get<[number]>(`select count(*) from ${book.table} where ${text}`, ...values)![0]
    })
  }
}
