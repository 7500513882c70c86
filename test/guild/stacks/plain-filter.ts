import type { BookQuery, Condition, Where } from 'millrace/guild/stacks'

/** A document of the property tests. */
export type AnyDoc = { readonly id: string; readonly [key: string]: unknown }

/**
 * What a query means, said as plainly as possible over a list: no cleverness, no sharing with the code under test. It is what
 * every backend is compared with.
 */
export function plainFind(docs: readonly AnyDoc[], query: BookQuery): string[] {
  const found = docs.filter((doc) => passes(doc, query.where ?? []))
  const given = query.orderBy ?? []
  const orders = (typeof given[0] === 'string' ? [given] : given) as readonly (readonly [string, 'asc' | 'desc'])[]
  found.sort((a, b) => {
    for (const [field, direction] of orders) {
      const order = compare(rankAndValue(fieldOf(a, field)), rankAndValue(fieldOf(b, field)))
      if (order !== 0) return direction === 'asc' ? order : -order
    }
    return compare(codePoints(a.id), codePoints(b.id))
  })
  const from = query.offset ?? 0
  return found.slice(from, query.limit === undefined ? found.length : from + query.limit).map(({ id }) => id)
}

export function passes(doc: AnyDoc, where: Where): boolean {
  if ('or' in where) {
    for (const clause of where.or) if (clause.every((condition) => holds(doc, condition))) return true
    return false
  }
  return where.every((condition) => holds(doc, condition))
}

function holds(doc: AnyDoc, [field, op, wanted]: Condition): boolean {
  const value = fieldOf(doc, field)
  if (op === 'IS NULL') return value == null
  if (op === 'IS NOT NULL') return value != null
  if (op === 'IN') return (wanted as unknown[]).some((one) => holds(doc, [field, '=', one as never]))
  if (wanted === null) return op === '=' ? value == null : value != null
  if (value == null) return false
  if (op === '=') return typeof value === typeof wanted && value === wanted
  if (op === '!=') return !(typeof value === typeof wanted && value === wanted)
  if (op === 'LIKE') return typeof value === 'string' && likePattern(wanted as string).test(value)
  if (typeof value !== typeof wanted || (typeof value !== 'number' && typeof value !== 'string')) return false
  const order = compare(rankAndValue(value), rankAndValue(wanted))
  if (op === '<') return order < 0
  if (op === '<=') return order <= 0
  if (op === '>') return order > 0
  return order >= 0
}

function fieldOf(doc: unknown, field: string): unknown {
  let at: unknown = doc
  for (const name of field.split('.')) {
    if (at === null || typeof at !== 'object' || Array.isArray(at)) return undefined
    at = Object.entries(at).find(([key]) => key === name)?.[1]
  }
  return at
}

function likePattern(pattern: string): RegExp {
  const source = Array.from(pattern, (char) => {
    if (char === '%') return '.*'
    if (char === '_') return '.'
    if (/[A-Za-z]/.test(char)) return `[${char.toLowerCase()}${char.toUpperCase()}]`
    return `\\u{${char.codePointAt(0)!.toString(16)}}`
  })
  return new RegExp(`^${source.join('')}$`, 'su')
}

/** A value as a list of numbers whose order as lists is the order of values. */
function rankAndValue(value: unknown): number[] {
  if (value == null) return [0]
  if (typeof value === 'number') return [1, value]
  if (typeof value === 'string') return [2, ...codePoints(value)]
  if (value === false) return [3]
  if (value === true) return [4]
  return [5]
}

const codePoints = (text: string): number[] => Array.from(text, (char) => char.codePointAt(0)!)

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, x] of a.entries()) {
    const y = b[i]
    if (y === undefined) return 1
    if (x !== y) return x < y ? -1 : 1
  }
  return a.length < b.length ? -1 : 0
}
