import { unreachable } from '../../../core/unreachable.js'
import type { SqliteValue } from '../../../drivers/sqlite/database.js'
import type { FieldPath, IndexFields } from '../documents/names.js'
import type { Filter, InternalQuery, RangeOp, Test, Value } from '../query/filter.js'

/** A piece of a statement and its parameters. */
export interface Sql {
  readonly text: string
  readonly values: readonly SqliteValue[]
}

const TRUE = Uint8Array.of(1)
const FALSE = Uint8Array.of(0)

/** Fields (as `a.b`) whose keys have columns of their own, and the names of these. */
export type KeyColumns = ReadonlyMap<string, string>

/**
 * A field as one value that SQLite compares and sorts as we want it: null for null and absent, a number, a text by code point,
 * and blobs for false, true and everything else. SQLite's own order of types (null, numbers, texts, blobs) is ours. Whole
 * numbers beyond 2^53 are read as JavaScript reads them.
 */
export function keyFrom(doc: 'doc' | 'new.doc', path: FieldPath): string {
  // Field names hold nothing but letters, digits, _ and -: they cannot end the literal.
  const at = `'$${path.map((name) => `."${name}"`).join('')}'`
  return (
    `(case json_type(${doc}, ${at}) when 'text' then json_extract(${doc}, ${at})` +
    ` when 'integer' then cast(json_extract(${doc}, ${at}) as real) when 'real' then json_extract(${doc}, ${at})` +
    ` when 'true' then x'01' when 'false' then x'00' when 'object' then x'02' when 'array' then x'02' end)`
  )
}

/** Where a statement finds the key of a field: in its column if it has one, else in the document. */
function keyOf(path: FieldPath, columns: KeyColumns): string {
  return isId(path) ? 'id' : (columns.get(path.join('.')) ?? keyFrom('doc', path))
}

/** The id has a column from the start, and is always a text. */
export const isId = (path: FieldPath): boolean => path.length === 1 && path[0] === 'id'

/** The columns of an index. It ends with the id, as every order does. */
export function indexColumns(fields: IndexFields, columns: KeyColumns): string {
  return [...new Set([...fields.map((path) => keyOf(path, columns)), 'id'])].join(', ')
}

/** The condition of a statement. */
export function filterSql(filter: Filter, columns: KeyColumns): Sql {
  if (filter.length === 0) return { text: '0', values: [] }
  const tests = (clause: readonly Test[]): Sql[] => clause.map((test) => testSql(test, columns))
  return join(
    filter.map((clause) => (clause.length === 0 ? { text: '1', values: [] } : join(tests(clause), ' and '))),
    ' or ',
  )
}

/** `where … order by … limit …` of a query. */
export function querySql(query: InternalQuery, columns: KeyColumns): Sql {
  const where = filterSql(query.filter, columns)
  const order = [
    ...query.orderBy.map(({ field, descending }) => `${keyOf(field, columns)} ${descending ? 'desc' : 'asc'}`),
    'id',
  ]
  // A bare `limit ?` lets SQLite plan by the number, and so plan again whenever one is bound: most of the time of a small query.
  const limit = query.limit === undefined ? '' : ' limit +? offset +?'
  return {
    text: `where ${where.text} order by ${order.join(', ')}${limit}`,
    values: query.limit === undefined ? where.values : [...where.values, query.limit, query.offset],
  }
}

function testSql(given: Test, columns: KeyColumns): Sql {
  const test = isId(given.field) ? idTest(given) : given
  if (typeof test === 'boolean') return { text: test ? '1' : '0', values: [] }
  const key = keyOf(test.field, columns)
  switch (test.op) {
    case 'isNull':
      return { text: `${key} is null`, values: [] }
    case 'isNotNull':
      return { text: `${key} is not null`, values: [] }
    case 'eq':
      return { text: `${key} = ?`, values: [stored(test.value)] }
    case 'neq':
      return { text: `${key} <> ?`, values: [stored(test.value)] }
    case 'in': {
      const some = { text: `${key} in (${test.values.map(() => '?').join(', ')})`, values: test.values.map(stored) }
      return test.orNull ? join([some, { text: `${key} is null`, values: [] }], ' or ') : some
    }
    case 'like':
      return { text: `(${ofText(key)} and ${key} like ?)`, values: [test.pattern] }
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte': {
      const range = { text: `${key} ${OPERATOR[test.op]} ?`, values: [test.value] }
      // Numbers come before all texts and texts before all blobs, so the other end of the range keeps other types out.
      const isLower = test.op === 'gt' || test.op === 'gte'
      if (typeof test.value === 'number')
        return isLower ? join([range, { text: `${key} < ''`, values: [] }], ' and ') : range
      return join([range, { text: isLower ? `${key} < x''` : `${key} >= ''`, values: [] }], ' and ')
    }
    default:
      return unreachable(test)
  }
}

/**
 * The id has its own column, and is always a text. SQLite would turn a number into a text before it compares it with a
 * column of texts, so what is no text is answered here.
 */
function idTest(test: Test): Test | boolean {
  if (test.op === 'in') return { ...test, values: test.values.filter((value) => typeof value === 'string') }
  if (!('value' in test) || typeof test.value === 'string') return test
  return test.op === 'neq'
}

const OPERATOR: Readonly<Record<RangeOp, string>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' }

const ofText = (key: string): string => `${key} >= '' and ${key} < x''`

function stored(value: Value): SqliteValue {
  if (typeof value !== 'boolean') return value
  return value ? TRUE : FALSE
}

function join(parts: readonly Sql[], between: string): Sql {
  if (parts.length === 1) return parts[0]!
  return {
    text: `(${parts.map(({ text }) => text).join(between)})`,
    values: parts.flatMap(({ values }) => values),
  }
}
