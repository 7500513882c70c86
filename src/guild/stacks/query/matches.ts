import { unreachable } from '../../../core/unreachable.js'
import { compareCodePoints, compareValues } from '../documents/compare.js'
import type { FieldPath } from '../documents/names.js'
import type { Doc, Json } from '../documents/value.js'
import type { Filter, InternalQuery, RangeOp, Test } from './filter.js'
import { isLike } from './like.js'

/** The value at a path, `undefined` when absent. Only own members of objects count; arrays are not entered. */
function valueAt(doc: Json, path: FieldPath): Json | undefined {
  let value: Json | undefined = doc
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined
    value = (value as { readonly [key: string]: Json })[name]
  }
  return value
}

/** Whether a document passes a filter. */
export function matches(doc: Doc, filter: Filter): boolean {
  return filter.some((clause) => clause.every((test) => holdsFor(doc, test)))
}

/** Sorts and cuts documents that already passed the filter. */
export function arrange(docs: readonly Doc[], query: InternalQuery): Doc[] {
  const sorted = docs.toSorted((a, b) => {
    for (const { field, descending } of query.orderBy) {
      const order = compareValues(valueAt(a, field), valueAt(b, field))
      if (order !== 0) return descending ? -order : order
    }
    return compareCodePoints(a.id, b.id)
  })
  return sorted.slice(query.offset, query.limit === undefined ? undefined : query.offset + query.limit)
}

function holdsFor(doc: Doc, test: Test): boolean {
  const value = valueAt(doc, test.field) ?? null
  switch (test.op) {
    case 'isNull':
      return value === null
    case 'isNotNull':
      return value !== null
    case 'eq':
      return value === test.value
    case 'neq':
      return value !== null && value !== test.value
    case 'in':
      return value === null ? test.orNull : test.values.some((member) => member === value)
    case 'like':
      return typeof value === 'string' && isLike(value, test.pattern)
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return (
        (typeof value === 'number' || typeof value === 'string') &&
        typeof value === typeof test.value &&
        inRange(compareValues(value, test.value), test.op)
      )
    default:
      return unreachable(test)
  }
}

function inRange(order: number, op: RangeOp): boolean {
  switch (op) {
    case 'gt':
      return order > 0
    case 'gte':
      return order >= 0
    case 'lt':
      return order < 0
    case 'lte':
      return order <= 0
  }
}
