import type { FieldPath } from '../documents/names.js'

/** What is left of a scalar once null has its own test. */
export type Value = string | number | boolean

/** One test, in the words of backends. Comparison with null has become `isNull` and `isNotNull`. */
export type Test =
  | { readonly op: 'eq' | 'neq'; readonly field: FieldPath; readonly value: Value }
  | { readonly op: RangeOp; readonly field: FieldPath; readonly value: string | number }
  | { readonly op: 'like'; readonly field: FieldPath; readonly pattern: string }
  | { readonly op: 'in'; readonly field: FieldPath; readonly values: readonly Value[]; readonly orNull: boolean }
  | { readonly op: 'isNull' | 'isNotNull'; readonly field: FieldPath }

export type RangeOp = 'gt' | 'gte' | 'lt' | 'lte'

/** Any of several conjunctions: a disjunction is one statement on one snapshot. `[]` is nothing, `[[]]` everything. */
export type Filter = readonly (readonly Test[])[]

/** A sort key of a query. */
export interface SortKey {
  readonly field: FieldPath
  readonly descending: boolean
}

/** A query, in the words of backends. */
export interface InternalQuery {
  readonly filter: Filter
  /** Without the implicit `id asc`, which backends add. */
  readonly orderBy: readonly SortKey[]
  readonly limit: number | undefined
  readonly offset: number
}

/** Everything. */
export const EVERYTHING: Filter = Object.freeze([Object.freeze([])])
