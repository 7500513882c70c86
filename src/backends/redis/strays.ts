import { MillraceError } from '../../core/error.js'
import type { Inspect, ItemSummary } from '../../ports/ledger.js'
import { summaryFrom } from './decode.js'
import type { Desk } from './desk.js'

type Ask = Parameters<NonNullable<Inspect['strays']>>[0]
type Page = Awaited<ReturnType<NonNullable<Inspect['strays']>>>

/** So many items one script looks at, about: the server decides. */
const STEP = 500
/** So many scripts one call runs at most. A page without strays is no reason to go on for ever. */
const MAX_STEPS = 20
/** Where in the hash of items to look, and behind which id of those found there. */
const CURSOR = /^(\d+)(?::(.*))?$/s

/** Unfinished items that nothing will ever put to work: the hash of all items is walked, whose cursor survives any change. */
export async function straysOn(desk: Desk, ask: Ask): Promise<Page> {
  const limit = Math.max(1, Math.floor(ask.limit))
  let [at, behind] = cursorFrom(ask.cursor)
  const items: ItemSummary[] = []
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const [next, ...rows] = (await desk.run('strays', [at, STEP])) as [string, ...(readonly string[] | null)[]]
    const views = rows.flatMap((row) => (row === null ? [] : [summaryFrom(row)]))
    const found = views.filter((view) => behind === undefined || idOf(view) > behind)
    const room = limit - items.length
    const taken = found.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1)).slice(0, room)
    items.push(...taken)
    if (found.length > room) return { items, next: `${at}:${idOf(items.at(-1)!)}` }
    if (next === '0') return { items }
    at = next
    behind = undefined
    if (items.length >= limit) break
  }
  return { items, next: at }
}

const idOf = (view: ItemSummary): string => view.envelope.id

function cursorFrom(cursor = '0'): [at: string, behind: string | undefined] {
  const [, at, behind] = CURSOR.exec(cursor) ?? []
  if (at !== undefined) return [at, behind]
  throw new MillraceError(
    'BAD_CURSOR',
    `strays({ cursor }): "${cursor}" is not a cursor. Give back \`next\` of the last page.`,
  )
}
