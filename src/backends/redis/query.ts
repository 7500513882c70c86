import { isWellFormed } from '../../core/text/well-formed.js'
import type { ItemQuery, TypeCounts } from '../../ports/inspect.js'
import { ITEM_STATES, type ItemState } from '../../ports/words.js'
import { readCursor } from '../shared/cursor.js'
import { narrowestIndex } from '../shared/item-query.js'
import type { RedisContext } from './context.js'
import { queueTypeFrom } from './keys.js'

type Filters = Omit<ItemQuery, 'cursor' | 'limit'>

/** The letters that records.lua files items under. */
const LETTERS: Readonly<Record<ItemState, string>> = {
  waiting: 'w',
  scheduled: 's',
  retrying: 'r',
  blocked: 'b',
  active: 'a',
  completed: 'c',
  dead: 'd',
  cancelled: 'k',
}

/** `<score>:<id>` of the last entry that a page read. */
const CURSOR = /^\d+:/

/** A query as query.lua reads it. `scan`: how many entries may be read that do not match. */
export function queryWords(query: ItemQuery, scan: number): (string | number)[] {
  const { cursor, limit } = query
  readCursor('list', cursor, CURSOR)
  const filter = (value: string | number | undefined) => (value === undefined ? '' : `=${value}`)
  return [
    ...[Math.max(1, Math.floor(limit)), scan, cursor ?? '', lettersOf(query), traitOf(query)],
    ...[query.queue, query.type, query.groupId, query.tag, query.class, query.fingerprint].map(filter),
    ...[query.before, query.after].map(filter),
  ]
}

function lettersOf({ state }: Pick<ItemQuery, 'state'>): string {
  return state === undefined ? Object.values(LETTERS).join('') : LETTERS[state]
}

/** The name of the narrowest list; '': the lists of queues and types. */
function traitOf(query: Filters): string {
  const by = narrowestIndex(query, ['fingerprint', 'tag', 'class'])
  return by === undefined ? '' : `${by[0]}:${query[by]}`
}

/** A text with half of a surrogate pair matches nothing; on its way to the server it would become another text. */
export function namesIllFormed(query: Filters): boolean {
  const { queue, type, groupId, tag, class: kind, fingerprint } = query
  return [queue, type, groupId, tag, kind, fingerprint].some((text) => text !== undefined && !isWellFormed(text))
}

/** How many matching items, and how many others, one call reads where no index has the number. */
const STEP = 1_000

/** The states whose lists are in the order of ends. */
const ENDED: ReadonlySet<ItemState> = new Set(['completed', 'dead', 'cancelled'])

/** How many items match a query: the sizes of lists where these are the answer; otherwise the lists are read, page by page. */
export async function count(context: RedisContext, query: Filters): Promise<number> {
  if (isIndexed(query)) return (await context.run('cards', cardWords(query))) as number
  let sum = 0
  let page: Partial<ItemQuery> | undefined = {}
  while (page !== undefined) {
    const words = queryWords({ ...query, ...page, limit: STEP }, STEP)
    const [next, found] = (await context.run('count', words)) as [string | null, number]
    sum += found
    page = next === null ? undefined : { cursor: next }
  }
  return sum
}

/** Whether the sizes of lists, or of parts of them by time, are the answer. */
function isIndexed({ state, groupId, before, after, fingerprint, tag, class: kind, queue, type }: Filters): boolean {
  if (groupId !== undefined) return false
  const isTimed = before !== undefined || after !== undefined
  if (isTimed && (state === undefined || !ENDED.has(state))) return false
  const traits = [fingerprint, tag, kind].filter((given) => given !== undefined).length
  return traits === 0 || (traits === 1 && queue === undefined && type === undefined)
}

function cardWords(query: Filters): string[] {
  const { queue, type, before, after } = query
  const instant = (at: number | undefined) => (at === undefined ? '' : String(at))
  const filter = (value: string | undefined) => (value === undefined ? '' : `=${value}`)
  return [lettersOf(query), traitOf(query), filter(queue), filter(type), instant(before), instant(after)]
}

const STATES = new Map(ITEM_STATES.map((state) => [LETTERS[state], state]))

/** The hash of counts, whose fields are the letter of a state and a queue type. */
export function countsFrom(flat: readonly string[]): TypeCounts[] {
  const found = new Map<string, { queue: string; type: string; counts: Partial<Record<ItemState, number>> }>()
  for (let i = 0; i < flat.length; i += 2) {
    const field = flat[i]!
    const queueType = field.slice(1)
    const one = found.get(queueType) ?? { ...queueTypeFrom(queueType), counts: {} }
    const state = STATES.get(field[0]!)
    if (state !== undefined) one.counts[state] = Number(flat[i + 1])
    found.set(queueType, one)
  }
  return [...found.values()]
}
