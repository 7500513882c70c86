/** What a field can be compared with. */
export type Scalar = string | number | boolean | null

/** One test of one field. Dots reach into nested objects. */
export type Condition =
  | readonly [field: string, op: '=' | '!=', value: Scalar]
  | readonly [field: string, op: '>' | '>=' | '<' | '<=', value: number | string]
  | readonly [field: string, op: 'LIKE', pattern: string]
  | readonly [field: string, op: 'IN', values: readonly Scalar[]]
  | readonly [field: string, op: 'IS NULL' | 'IS NOT NULL']

/** All of these hold. An empty one matches everything. */
export type Clause = readonly Condition[]

/** A clause, or any of several. `{ or: [] }` matches nothing. */
export type Where = Clause | { readonly or: readonly Clause[] }

/** How to sort by one field. Absent and null come first ascending, and last descending. */
export type Order = readonly [field: string, direction: 'asc' | 'desc']

/** How a list is sorted and cut. Every order ends with `id` ascending. */
export interface ListOptions {
  readonly orderBy?: Order | readonly Order[]
  readonly limit?: number
  /** Needs `limit`. */
  readonly offset?: number
}

/** What `find` takes. */
export interface BookQuery extends ListOptions {
  readonly where?: Where
}
