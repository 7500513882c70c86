import type { Inspect, ItemQuery } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'
import type { Desk } from './desk.js'
import { lettersOf, queryWords, traitOf } from './query-words.js'

type Query = Parameters<NonNullable<Inspect['count']>>[0]

/** So many items that fit, and so many that do not, one call looks at where no index knows the number. */
const STEP = 1_000

/** The states whose lists are in the order of ends. */
const ENDED: ReadonlySet<ItemStateWord> = new Set(['completed', 'dead', 'cancelled'])

/** How many items a query matches. Sizes of lists where they are the answer; otherwise the lists are walked, page by page. */
export async function countOn(desk: Desk, query: Query): Promise<number> {
  if (isIndexed(query)) return (await desk.run('cards', cardWords(query))) as number
  let sum = 0
  let page: Partial<ItemQuery> | undefined = {}
  while (page !== undefined) {
    const words = queryWords({ ...query, ...page, limit: STEP }, STEP)
    const [next, found] = (await desk.run('count', words)) as [string | null, number]
    sum += found
    page = next === null ? undefined : { cursor: next }
  }
  return sum
}

/** Whether some lists, or what stands in them before an instant, are exactly what is asked for. */
function isIndexed({ state, groupId, before, after, fingerprint, tag, class: kind, queue, type }: Query): boolean {
  if (groupId !== undefined) return false
  const isTimed = before !== undefined || after !== undefined
  if (isTimed && (state === undefined || !ENDED.has(state))) return false
  const traits = [fingerprint, tag, kind].filter((given) => given !== undefined).length
  return traits === 0 || (traits === 1 && queue === undefined && type === undefined)
}

function cardWords(query: Query): string[] {
  const { queue, type, before, after } = query
  const instant = (at: number | undefined) => (at === undefined ? '' : String(at))
  const filter = (value: string | undefined) => (value === undefined ? '' : `=${value}`)
  return [lettersOf(query), traitOf(query), filter(queue), filter(type), instant(before), instant(after)]
}
