import { describeValue } from '../../../core/text/describe-value.js'
import { closestHint } from '../../../core/text/did-you-mean.js'
import { fieldPath } from '../documents/names.js'
import { isStorableText } from '../documents/value.js'
import { StacksQueryError } from '../errors.js'
import {
  EVERYTHING,
  type Filter,
  type InternalQuery,
  type RangeOp,
  type SortKey,
  type Test,
  type Value,
} from './filter.js'

/** Bounds that every backend can serve: SQLite nests expressions a thousand deep, and patterns cost time. */
const MAX_CLAUSES = 250
const MAX_CONDITIONS = 100
const MAX_VALUES = 5_000
const MAX_PATTERN = 1_000

const OPERATORS = ['=', '!=', '>', '>=', '<', '<=', 'LIKE', 'IN', 'IS NULL', 'IS NOT NULL'] as const

const RANGES: Readonly<Record<string, RangeOp>> = { '>': 'gt', '>=': 'gte', '<': 'lt', '<=': 'lte' }

/** Checks what `find` or `list` was given, and translates it for backends. */
export function parseQuery(query: unknown, owner = 'find()'): InternalQuery {
  if (typeof query !== 'object' || query === null || Array.isArray(query))
    throw new StacksQueryError(
      owner,
      `takes an object such as { where, orderBy, limit, offset }, got ${describeValue(query)}.`,
    )
  const known = owner === 'list()' ? ['orderBy', 'limit', 'offset'] : ['where', 'orderBy', 'limit', 'offset']
  for (const name of Object.keys(query)) {
    if (known.includes(name)) continue
    throw new StacksQueryError(name, `is no part of a query.${closestHint(name, known)} Parts: ${known.join(', ')}.`)
  }
  const { where, orderBy, limit, offset } = query as Record<string, unknown>
  const [rows, skip] = [wholeNumber('limit', limit), wholeNumber('offset', offset)]
  if (skip !== undefined && rows === undefined) throw new StacksQueryError('offset', 'needs a limit.')
  return { filter: parseWhere(where), orderBy: parseOrder(orderBy), limit: rows, offset: skip ?? 0 }
}

/** Checks a `where`, and turns it into a disjunction of conjunctions. Without one, everything matches. */
export function parseWhere(where: unknown): Filter {
  if (where === undefined) return EVERYTHING
  const clauses = Array.isArray(where) ? [where] : orOf(where)
  if (clauses.length > MAX_CLAUSES)
    throw new StacksQueryError('where.or', `has ${clauses.length} clauses; at most ${MAX_CLAUSES} are allowed.`)
  const filter = clauses.map((clause, i) => parseClause(clause, Array.isArray(where) ? 'where' : `where.or[${i}]`))
  const values = filter.flat().reduce((sum, test) => sum + (test.op === 'in' ? test.values.length : 1), 0)
  if (values > MAX_VALUES)
    throw new StacksQueryError('where', `compares with ${values} values; at most ${MAX_VALUES} are allowed.`)
  return filter
}

function orOf(where: unknown): readonly unknown[] {
  const or = typeof where === 'object' && where !== null ? (where as { or?: unknown }).or : undefined
  if (!Array.isArray(or) || Object.keys(where as object).length !== 1)
    throw new StacksQueryError('where', `must be a list of conditions or { or: [...] }, got ${describeValue(where)}.`)
  return or
}

function parseClause(clause: unknown, path: string): readonly Test[] {
  if (!Array.isArray(clause))
    throw new StacksQueryError(path, `must be a list of conditions, got ${describeValue(clause)}.`)
  if (clause.length > MAX_CONDITIONS)
    throw new StacksQueryError(path, `has ${clause.length} conditions; at most ${MAX_CONDITIONS} are allowed.`)
  return clause.map((condition, i) => parseCondition(condition, `${path}[${i}]`))
}

function parseCondition(condition: unknown, path: string): Test {
  if (!Array.isArray(condition))
    throw new StacksQueryError(path, `must be [field, operator, value], got ${describeValue(condition)}.`)
  const [name, op, value] = condition as readonly unknown[]
  const field = fieldPath(name)
  const unary = op === 'IS NULL' || op === 'IS NOT NULL'
  if (condition.length !== (unary ? 2 : 3))
    throw new StacksQueryError(path, `must have ${unary ? 'no value' : 'one value'} after ${describeValue(op)}.`)
  switch (op) {
    case 'IS NULL':
      return { op: 'isNull', field }
    case 'IS NOT NULL':
      return { op: 'isNotNull', field }
    case '=':
      return value === null ? { op: 'isNull', field } : { op: 'eq', field, value: scalar(value, path) }
    case '!=':
      return value === null ? { op: 'isNotNull', field } : { op: 'neq', field, value: scalar(value, path) }
    case '>':
    case '>=':
    case '<':
    case '<=': {
      const bound = scalar(value, path)
      if (typeof bound === 'boolean')
        throw new StacksQueryError(path, `compares by ${op} with a number or a string, got ${describeValue(value)}.`)
      return { op: RANGES[op]!, field, value: bound }
    }
    case 'LIKE': {
      const pattern = scalar(value, path)
      if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN)
        throw new StacksQueryError(
          path,
          `needs a pattern of at most ${MAX_PATTERN} characters, got ${describeValue(value)}.`,
        )
      return { op: 'like', field, pattern }
    }
    case 'IN': {
      if (!Array.isArray(value))
        throw new StacksQueryError(path, `needs a list of values, got ${describeValue(value)}.`)
      const values = value.filter((member) => member !== null).map((member) => scalar(member, path))
      return { op: 'in', field, values: [...new Set(values)], orNull: value.includes(null) }
    }
    default: {
      const closest = typeof op === 'string' ? OPERATORS.find((known) => known === op.toUpperCase()) : undefined
      const hint = closest === undefined ? '' : ` Did you mean "${closest}"?`
      throw new StacksQueryError(
        path,
        `has the unknown operator ${describeValue(op)}.${hint} Operators: ${OPERATORS.join(', ')}.`,
      )
    }
  }
}

function scalar(value: unknown, path: string): Value {
  switch (typeof value) {
    case 'string':
      // No document has such text, but PostgreSQL refuses even the question.
      if (!isStorableText(value))
        throw new StacksQueryError(path, 'compares with U+0000 or half of a surrogate pair, which no document has.')
      return value
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value === 0 ? 0 : value
  }
  throw new StacksQueryError(
    path,
    `compares with ${describeValue(value)}, which is no string, finite number, boolean or null.`,
  )
}

function parseOrder(orderBy: unknown): SortKey[] {
  if (orderBy === undefined) return []
  if (!Array.isArray(orderBy))
    throw new StacksQueryError(
      'orderBy',
      `must be [field, 'asc' | 'desc'] or a list of them, got ${describeValue(orderBy)}.`,
    )
  const orders: readonly unknown[] = typeof orderBy[0] === 'string' ? [orderBy] : orderBy
  if (orders.length > MAX_CONDITIONS) throw new StacksQueryError('orderBy', `has more than ${MAX_CONDITIONS} fields.`)
  return orders.map((order, i) => {
    const [field, direction] = Array.isArray(order) && order.length === 2 ? order : []
    if (direction !== 'asc' && direction !== 'desc')
      throw new StacksQueryError(`orderBy[${i}]`, `must be [field, 'asc' | 'desc'], got ${describeValue(order)}.`)
    return { field: fieldPath(field), descending: direction === 'desc' }
  })
}

function wholeNumber(path: string, value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new StacksQueryError(path, `must be a whole number >= 0, got ${describeValue(value)}.`)
}
