import { type Queryable, quoteIdentifier } from '../../../drivers/postgres/index.js'
import { type BookRef, bookKey, type IndexFields, indexKey } from '../documents/names.js'
import { UnknownBookError } from '../errors.js'
import type { Expressions } from './expression.js'

/** Knows which table keeps which book. */
export class PostgresCatalogue {
  readonly #schema: string
  readonly #expressions: Expressions
  readonly #tables = new Map<string, string>()

  constructor(schema: string, expressions: Expressions) {
    this.#schema = quoteIdentifier(schema)
    this.#expressions = expressions
  }

  /** The table of a book, if it was declared here or by another process. */
  async find(on: Queryable, ref: BookRef): Promise<string | undefined> {
    const key = bookKey(ref)
    const known = this.#tables.get(key)
    if (known !== undefined) return known
    const id = await this.#id(on, ref)
    if (id === undefined) return undefined
    // Only what is committed is seen by others, and books are declared in transactions of their own.
    const table = this.#table(id)
    this.#tables.set(key, table)
    return table
  }

  /** The table of a book that is to be written. */
  async need(on: Queryable, ref: BookRef): Promise<string> {
    const table = await this.find(on, ref)
    if (table === undefined) throw new UnknownBookError(ref.ownerId, ref.book)
    return table
  }

  /** Whether the book and all these indexes are there. */
  async has(on: Queryable, ref: BookRef, indexes: readonly IndexFields[]): Promise<boolean> {
    const id = await this.#id(on, ref)
    if (id === undefined) return false
    const known = await this.#indexes(on, id)
    return indexes.every((fields) => known.has(indexKey(fields)))
  }

  /** Makes what is missing, inside the caller's transaction, one process at a time. */
  async make(tx: Queryable, ref: BookRef, indexes: readonly IndexFields[]): Promise<void> {
    const schema = this.#schema
    const lock = 'select pg_advisory_xact_lock(hashtextextended($1, 2))'
    await tx.query({ name: '', text: lock, values: [`stacks catalogue of ${schema}`] })
    const insert = `insert into ${schema}.stacks_book (owner, name) values ($1, $2) on conflict do nothing`
    await tx.query({ name: '', text: insert, values: [ref.ownerId, ref.book] })
    const id = (await this.#id(tx, ref))!
    await tx.query({
      name: '',
      text: `create table if not exists ${this.#table(id)} (
        id text collate "C" primary key, rev text collate "C" not null, doc jsonb not null)`,
    })
    const known = await this.#indexes(tx, id)
    for (const fields of indexes) {
      if (known.has(indexKey(fields))) continue
      const [row] = await tx.query<[number]>({
        name: '',
        text: `insert into ${schema}.stacks_index (book, fields) values ($1, $2) returning id`,
        values: [id, indexKey(fields)],
      })
      const columns = this.#expressions.indexColumns(fields)
      await tx.query({ name: '', text: `create index stacks_i${row![0]} on ${this.#table(id)} (${columns})` })
    }
  }

  #table(id: number): string {
    return `${this.#schema}.stacks_b${id}`
  }

  async #id(on: Queryable, ref: BookRef): Promise<number | undefined> {
    const text = `select id from ${this.#schema}.stacks_book where owner = $1 and name = $2`
    const [row] = await on.query<[number]>({ name: '', text, values: [ref.ownerId, ref.book] })
    return row?.[0]
  }

  async #indexes(on: Queryable, book: number): Promise<Set<string>> {
    const text = `select fields from ${this.#schema}.stacks_index where book = $1`
    const rows = await on.query<[string]>({ name: '', text, values: [book] })
    return new Set(rows.map(([fields]) => fields))
  }
}
