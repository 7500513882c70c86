import type Database from 'better-sqlite3'
import { overBetterSqlite3 } from '../../../src/drivers/sqlite/better-sqlite3.js'
import type { BookRef } from '../../../src/guild/stacks/documents/names.js'
import { type BookTable, SqliteCatalogue } from '../../../src/guild/stacks/sqlite/catalogue.js'
import { Session } from '../../../src/guild/stacks/sqlite/session.js'

/** How a store on SQLite keeps a book, for tests that inspect query plans or fill it past the store. */
export function sqliteBook(db: Database.Database, ref: BookRef): BookTable {
  const book = new SqliteCatalogue('stacks').find(new Session(overBetterSqlite3(db)), ref)
  if (book === undefined) throw new Error(`no book ${ref.ownerId}/${ref.book} in ${db.name}`)
  return book
}
