/** A value of a parameter. Objects are never sent: what is no text or number is JSON that its sender wrote. */
export type SqlValue = string | number | boolean | null | undefined | readonly (string | number | boolean | null)[]

/** One statement with its name, under which the server may keep its plan. */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly values?: readonly SqlValue[]
}

/** A row, by position. 64-bit numbers come as text. */
export type Row = readonly unknown[]

/** Whatever can run a statement: a pool, a connection inside a transaction, the transaction of a user's library. */
export interface Queryable {
  query<R extends Row>(statement: Statement): Promise<R[]>
}
