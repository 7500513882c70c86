import { unreachable } from '../../../core/unreachable.js'
import { quoteIdentifier, type SqlValue } from '../../../drivers/postgres/index.js'
import type { FieldPath, IndexFields } from '../documents/names.js'
import type { Filter, InternalQuery, RangeOp, Test, Value } from '../query/filter.js'
import { isExact, keyOfValue } from './key.js'

/** A statement in the making: its parameters are numbered as they come. */
export class Parameters {
  readonly values: SqlValue[] = []

  add(value: SqlValue, type: string): string {
    this.values.push(value)
    return `$${this.values.length}::${type}`
  }
}

const OPERATOR: Readonly<Record<RangeOp, string>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' }

/** Writes conditions for the books of one schema. */
export class Expressions {
  readonly #schema: string

  constructor(schema: string) {
    this.#schema = quoteIdentifier(schema)
  }

  /** The columns of an index. The tables' ids are not part of it: they may be long, and ties are few. */
  indexColumns(fields: IndexFields): string {
    return fields.map((path) => `${this.#key(path)} asc nulls first`).join(', ')
  }

  filter(filter: Filter, parameters: Parameters): string {
    if (filter.length === 0) return 'false'
    return filter
      .map((clause) =>
        clause.length === 0 ? 'true' : clause.map((test) => this.#test(test, parameters)).join(' and '),
      )
      .map((text) => `(${text})`)
      .join(' or ')
  }

  query(query: InternalQuery, parameters: Parameters): string {
    const where = this.filter(query.filter, parameters)
    const order = query.orderBy.flatMap(({ field, descending }) => {
      const direction = descending ? 'desc nulls last' : 'asc nulls first'
      if (isId(field)) return [`id ${direction}`]
      // The key has the beginning of long texts only.
      return [`${this.#key(field)} ${direction}`, `${this.#text(field)} ${direction}`]
    })
    const limit =
      query.limit === undefined
        ? ''
        : ` limit ${parameters.add(query.limit, 'bigint')} offset ${parameters.add(query.offset, 'bigint')}`
    return `where ${where} order by ${[...order, 'id asc'].join(', ')}${limit}`
  }

  /** The member of the document. Never enters an array, as the operator for paths would. */
  #field(path: FieldPath): string {
    // Field names hold nothing but letters, digits, _ and -: they cannot end the literal.
    return `(doc${path.map((name) => `->'${name}'`).join('')})`
  }

  #key(path: FieldPath): string {
    return `(${this.#schema}.stacks_key(${this.#field(path)}) collate "C")`
  }

  #text(path: FieldPath): string {
    return `(${this.#schema}.stacks_text(${this.#field(path)}) collate "C")`
  }

  #test(test: Test, parameters: Parameters): string {
    if (isId(test.field)) return idTest(test, parameters)
    const key = this.#key(test.field)
    const text = this.#text(test.field)
    switch (test.op) {
      case 'isNull':
        return `${key} is null`
      case 'isNotNull':
        return `${key} is not null`
      case 'eq':
        return this.#equals(key, text, test.value, parameters)
      case 'neq': {
        const differs = `${key} <> ${parameters.add(keyOfValue(test.value), 'text')}`
        return isExact(test.value) ? differs : `(${differs} or ${text} <> ${parameters.add(test.value, 'text')})`
      }
      case 'in': {
        const short = test.values.filter(isExact)
        const some = [
          ...(short.length === 0 ? [] : [`${key} = any (${parameters.add(short.map(keyOfValue), 'text[]')})`]),
          ...test.values.filter((value) => !isExact(value)).map((value) => this.#equals(key, text, value, parameters)),
          ...(test.orNull ? [`${key} is null`] : []),
        ]
        return some.length === 0 ? 'false' : `(${some.join(' or ')})`
      }
      case 'like':
        return `${key} >= 's' and ${key} < 't' and ${text} ilike ${parameters.add(test.pattern, 'text')} escape ''`
      case 'gt':
      case 'gte':
      case 'lt':
      case 'lte':
        return this.#range(key, text, test.op, test.value, parameters)
      default:
        return unreachable(test)
    }
  }

  #equals(key: string, text: string, value: Value, parameters: Parameters): string {
    const same = `${key} = ${parameters.add(keyOfValue(value), 'text')}`
    return isExact(value) ? same : `(${same} and ${text} = ${parameters.add(value, 'text')})`
  }

  #range(key: string, text: string, op: RangeOp, value: string | number, parameters: Parameters): string {
    const isLower = op === 'gt' || op === 'gte'
    // The other end of the range keeps values of other types out.
    const [first, last] = typeof value === 'number' ? ["'n'", "'o'"] : ["'s'", "'t'"]
    const end = isLower ? `${key} < ${last}` : `${key} >= ${first}`
    const bound = parameters.add(keyOfValue(value), 'text')
    if (isExact(value)) return `${key} ${OPERATOR[op]} ${bound} and ${end}`
    const full = `${text} ${OPERATOR[op]} ${parameters.add(value, 'text')}`
    return `${key} ${isLower ? '>=' : '<='} ${bound} and ${end} and ${full}`
  }
}

const isId = (path: FieldPath): boolean => path.length === 1 && path[0] === 'id'

/** The id has its own column and is always a text, so other types never equal it. */
function idTest(test: Test, parameters: Parameters): string {
  switch (test.op) {
    case 'isNull':
      return 'false'
    case 'isNotNull':
      return 'true'
    case 'eq':
      return typeof test.value === 'string' ? `id = ${parameters.add(test.value, 'text')}` : 'false'
    case 'neq':
      return typeof test.value === 'string' ? `id <> ${parameters.add(test.value, 'text')}` : 'true'
    case 'in': {
      const texts = test.values.filter((value) => typeof value === 'string')
      return texts.length === 0 ? 'false' : `id = any (${parameters.add(texts, 'text[]')})`
    }
    case 'like':
      return `id ilike ${parameters.add(test.pattern, 'text')} escape ''`
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return typeof test.value === 'string' ? `id ${OPERATOR[test.op]} ${parameters.add(test.value, 'text')}` : 'false'
    default:
      return unreachable(test)
  }
}
