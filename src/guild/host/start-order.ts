import type { LoadedApparatus } from './plugin.js'

/**
 * The order in which apparatuses start: what one requires comes before it, and so does what it recommends, unless that would
 * make a circle. Beyond that, load order. The input has no circle of `requires`.
 */
export function startOrder(apparatuses: readonly LoadedApparatus[]): LoadedApparatus[] {
  const byId = new Map(apparatuses.map((loaded) => [loaded.id, loaded]))
  const before = new Map(
    apparatuses.map(({ id, apparatus }) => [id, (apparatus.requires ?? []).filter((needed) => byId.has(needed))]),
  )
  for (const { id, apparatus } of apparatuses) {
    for (const wished of apparatus.recommends ?? []) {
      if (byId.has(wished) && !reaches(wished, id, before)) before.get(id)!.push(wished)
    }
  }
  const ordered: LoadedApparatus[] = []
  const seen = new Set<string>()
  const visit = (id: string) => {
    if (seen.has(id)) return
    seen.add(id)
    before.get(id)!.forEach(visit)
    ordered.push(byId.get(id)!)
  }
  for (const { id } of apparatuses) visit(id)
  return ordered
}

/** Whether `to` is `from`, or among what must start before it. */
function reaches(from: string, to: string, before: ReadonlyMap<string, readonly string[]>): boolean {
  const seen = new Set([from])
  for (const id of seen) {
    if (id === to) return true
    for (const next of before.get(id) ?? []) seen.add(next)
  }
  return false
}
