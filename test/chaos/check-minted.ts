import type { ItemView } from '../../src/ports/inspect.js'
import { grouped } from './grouped.js'
import type { StoredGroup } from './stored-records.js'
import type { Accepted, Minted } from './truth.js'

export interface Halves {
  /** Items of which something other than exactly one whole run took effect. */
  readonly mixedRuns: readonly string[]
  /** Runs that made up children or a result, and were refused. */
  readonly refusedRuns: number
}

/** Each run made up its own ids and token: of one run everything must be there, and of the others nothing. */
export function checkMinted(
  accepted: readonly Accepted[],
  minted: readonly Minted[],
  items: ReadonlyMap<string, ItemView>,
  groupOf: (id: string) => StoredGroup | undefined,
): Halves {
  const runsOf = grouped(minted, ({ id }) => id)
  const mixedRuns: string[] = []
  let refusedRuns = 0
  for (const { id, kind } of accepted) {
    const view = items.get(id)
    if ((kind !== 'mint' && kind !== 'coin') || view?.status !== 'completed') continue
    const runs = runsOf.get(id) ?? []
    const inEffect = runs.filter((run) =>
      kind === 'coin' ? view.result === JSON.stringify(run.token) : run.children.some((child) => items.has(child)),
    )
    refusedRuns += runs.length - inEffect.length
    if (inEffect.length !== 1) mixedRuns.push(`${id}: ${inEffect.length} of ${runs.length} runs took effect`)
    else if (kind === 'mint') mixedRuns.push(...halvesOf(inEffect[0]!, items, groupOf(id)))
  }
  return { mixedRuns, refusedRuns }
}

function halvesOf(
  { id, token, children }: Minted,
  items: ReadonlyMap<string, ItemView>,
  group: StoredGroup | undefined,
): string[] {
  const text = JSON.stringify(token)
  const odd = children.flatMap((child) => {
    const view = items.get(child)
    if (view?.result === text) return []
    return [`${child} of ${id}: ${view?.status ?? 'missing'}, ${view?.result} instead of ${text}`]
  })
  if (group?.value !== text) odd.push(`group of ${id}: ${group?.value} instead of ${text}`)
  return odd
}
