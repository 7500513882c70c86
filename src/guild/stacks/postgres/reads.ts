import type { Queryable } from '../../../drivers/postgres/index.js'
import type { BackendReads, Stored } from '../backend.js'
import type { BookRef } from '../documents/names.js'
import { type Doc, parsed } from '../documents/value.js'
import type { Filter, InternalQuery } from '../query/filter.js'
import type { PostgresCatalogue } from './catalogue.js'
import { type Expressions, Parameters } from './expression.js'

/** What reads and transactions of one store share. */
export interface PostgresParts {
  readonly catalogue: PostgresCatalogue
  readonly expressions: Expressions
}

/** Reads on the pool, or inside a transaction. */
export class PostgresReads implements BackendReads {
  readonly #on: Queryable
  readonly #parts: PostgresParts

  constructor(on: Queryable, parts: PostgresParts) {
    this.#on = on
    this.#parts = parts
  }

  get(ref: BookRef, id: string): Promise<Stored | null> {
    return this.one(ref, id, '')
  }

  async find(ref: BookRef, query: InternalQuery): Promise<Doc[]> {
    const table = await this.#parts.catalogue.find(this.#on, ref)
    if (table === undefined) return []
    const parameters = new Parameters()
    const tail = this.#parts.expressions.query(query, parameters)
    const text = `select doc::text from ${table} ${tail}`
    const rows = await this.#on.query<[string]>({ name: '', text, values: parameters.values })
    return rows.map(([doc]) => parsed(doc))
  }

  async count(ref: BookRef, filter: Filter): Promise<number> {
    const table = await this.#parts.catalogue.find(this.#on, ref)
    if (table === undefined) return 0
    const parameters = new Parameters()
    const where = this.#parts.expressions.filter(filter, parameters)
    const text = `select count(*)::int from ${table} where ${where}`
    const [row] = await this.#on.query<[number]>({ name: '', text, values: parameters.values })
    return row![0]
  }

  /** One document by its primary key. */
  protected async one(ref: BookRef, id: string, tail: '' | 'for update'): Promise<Stored | null> {
    const table = await this.#parts.catalogue.find(this.#on, ref)
    if (table === undefined) return null
    const text = `select doc::text, rev from ${table} where id = $1 ${tail}`
    const [row] = await this.#on.query<[string, string]>({ name: '', text, values: [id] })
    return row === undefined ? null : { doc: parsed(row[0]), rev: row[1] }
  }
}
