import type { BackendTx, Stored } from '../backend.js'
import { type BookRef, bookKey } from '../documents/names.js'
import { type Doc, parsed } from '../documents/value.js'
import type { ChangeEvent } from '../watch/events.js'
import type { OpenTransaction } from './open-transaction.js'
import { type PostgresParts, PostgresReads } from './reads.js'

export interface PostgresTxOptions extends PostgresParts {
  /** The quoted name of the schema. */
  readonly schema: string
  readonly channel: string
  /** Called once, when it has ended. */
  readonly release: () => void
}

/** A transaction on its own connection. Conflicts with others show when a document is written or locked. */
export class PostgresTx extends PostgresReads implements BackendTx {
  readonly #tx: OpenTransaction
  readonly #options: PostgresTxOptions
  #isOver = false

  constructor(tx: OpenTransaction, options: PostgresTxOptions) {
    super(tx, options)
    this.#tx = tx
    this.#options = options
  }

  lock(ref: BookRef, id: string): Promise<Stored | null> {
    return this.one(ref, id, 'for update')
  }

  async put(ref: BookRef, doc: Doc, rev: string): Promise<Doc | null> {
    const table = await this.#options.catalogue.need(this.#tx, ref)
    // The inner select sees the table as it was before this statement.
    const text = `insert into ${table} as t (id, rev, doc) values ($1, $2, $3::jsonb)
      on conflict (id) do update set rev = excluded.rev, doc = excluded.doc
      returning (select o.doc::text from ${table} o where o.id = $1)`
    const [row] = await this.#tx.query<[string | null]>({ name: '', text, values: [doc.id, rev, JSON.stringify(doc)] })
    const before = row?.[0] ?? null
    return before === null ? null : parsed(before)
  }

  async delete(ref: BookRef, id: string): Promise<Doc | null> {
    const table = await this.#options.catalogue.need(this.#tx, ref)
    const text = `delete from ${table} where id = $1 returning doc::text`
    const [row] = await this.#tx.query<[string]>({ name: '', text, values: [id] })
    return row === undefined ? null : parsed(row[0])
  }

  async append(events: readonly ChangeEvent<Doc>[], hops: number): Promise<number | null> {
    const { schema, channel } = this.#options
    const text = `select ${schema}.stacks_append($1::text[], $2, $3::text[], $4)`
    const values = [events.map(bookKey), hops, events.map((event) => JSON.stringify(event)), channel]
    const [row] = await this.#tx.query<[string | null]>({ name: '', text, values })
    return row?.[0] == null ? null : Number(row[0])
  }

  async commit(): Promise<void> {
    try {
      await this.#tx.commit()
    } finally {
      this.#end()
    }
  }

  async rollback(): Promise<void> {
    if (this.#isOver) return
    try {
      await this.#tx.rollback()
    } finally {
      this.#end()
    }
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.release()
  }
}
