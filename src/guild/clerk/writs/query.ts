import { integerOption, OptionTypeError, optionsObject, stringOption } from '../../../core/options.js'
import type { ReadOnlyBook } from '../../stacks/api.js'
import type { Clause, Condition } from '../../stacks/query/query.js'
import { WritReferenceError } from '../errors.js'
import { optionalText } from './post.js'
import type { WritDoc, WritFilter, WritListing } from './writ.js'

const FILTERS = ['phase', 'type', 'parentId'] as const
/** Sorts behind every text that begins with what precedes it. */
const LAST = '\u{10ffff}'

/** What reading the book of writs takes: the Clerk's context, or any other handle. */
interface Reader {
  readonly writs: Pick<ReadOnlyBook<WritDoc>, 'find' | 'get' | 'count'>
}

/** Writs, the newest first. */
export async function listWrits(context: Reader, given: WritListing | undefined): Promise<WritDoc[]> {
  const listing = optionsObject('list()', given, [...FILTERS, 'limit', 'offset'])
  const limit = integerOption('list().limit', listing.limit, { min: 1, default: 20 })
  const offset = integerOption('list().offset', listing.offset, { min: 0, default: 0 })
  const orderBy = [
    ['createdAt', 'desc'],
    ['id', 'desc'],
  ] as const
  return context.writs.find({ where: clauseOf('list()', listing), orderBy, limit, offset })
}

/** How many writs there are. */
export async function countWrits(context: Reader, given: WritFilter | undefined): Promise<number> {
  return context.writs.count(clauseOf('count()', optionsObject('count()', given, FILTERS)))
}

/** The id that is meant by it or by its beginning. */
export async function resolveWritId(context: Reader, idOrPrefix: string): Promise<string> {
  stringOption('resolveId(prefix)', idOrPrefix)
  const exact = await context.writs.get(idOrPrefix)
  if (exact !== null) return exact.id
  const found = await context.writs.find({
    where: [
      ['id', '>=', idOrPrefix],
      ['id', '<', `${idOrPrefix}${LAST}`],
    ],
    orderBy: ['id', 'asc'],
    limit: 2,
  })
  const [one, another] = found
  if (one === undefined || another !== undefined)
    throw new WritReferenceError(
      idOrPrefix,
      found.map(({ id }) => id),
    )
  return one.id
}

function clauseOf(path: string, { phase, type, parentId }: WritFilter): Clause {
  const parent = optionalText(`${path}.parentId`, parentId)
  return [
    ...anyOf(path, 'phase', phase),
    ...anyOf(path, 'type', type),
    ...(parent === undefined ? [] : [['parentId', '=', parent] as const]),
  ]
}

function anyOf(path: string, field: string, wanted: string | readonly string[] | undefined): Condition[] {
  if (wanted === undefined) return []
  if (typeof wanted === 'string') return [[field, '=', wanted]]
  if (Array.isArray(wanted) && wanted.every((one) => typeof one === 'string')) return [[field, 'IN', wanted]]
  throw new OptionTypeError(`${path}.${field}`, 'a string or an array of strings', wanted)
}
